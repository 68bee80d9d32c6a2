// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// A history is what has changed in a cluster.
type history struct {
	trace    *trace
	clock    *clock
	mu       sync.Mutex         // guards what follows
	written  map[types.UID]bool // objects that the operator, a user or another client has written
	states   trial.States
	progress time.Duration  // by clock, of the last change to a state that its object was not in before
	kinds    map[string]int // changes, of all clients, by kind
	version  uint64         // of the last change
}

func newHistory(t *trace, c *clock) *history {
	return &history{trace: t, clock: c, written: map[types.UID]bool{}, kinds: map[string]int{}}
}

func thing(resource, namespace, name string) string {
	return resource + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// changed takes a change of the cluster, which is one of its objects that operators work with.
func (h *history) changed(c apiserver.Change) {
	resource := c.Resource.GroupResource()
	what := thing(resource.String(), c.Namespace, c.Name)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version = c.ResourceVersion
	operator := cluster.IsOperator(c.Actor)
	if operator || c.Actor == trial.UserActor || c.Actor == otherActor {
		h.written[c.UID] = true
	}
	if !operator {
		h.trace.Add(c.Actor, "write", strings.ToLower(c.Type)+" "+what)
	}
	h.kinds[resource.String()]++
	if _, isNew := h.states.Enter(c); isNew {
		h.progress = h.clock.now()
	}
}

// idle returns for how long, by clock, nothing new has happened.
func (h *history) idle() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.now() - h.progress
}

// countOf returns how often objects of a kind have changed.
func (h *history) countOf(kind string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kinds[kind]
}

// last returns the resource version of the last change.
func (h *history) last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version
}

// wake says that something new happens.
func (h *history) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = h.clock.now()
}

// isCompared reports whether an object is compared with that of another run: what only others have
// written, and by themselves, depends on the time that has passed.
func (h *history) isCompared(uid types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.written[uid]
}
