// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/minted"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// A state is a picture of a cluster. It is the one of virtual time, but that only what the operator or
// a user has written is compared: what others write by themselves depends on the time that has passed.
type state struct {
	things  snapshot.Snapshot   // nil if nothing is known
	written map[string]struct{} // things that the operator or a user has written, without their numbers
}

// A history is what has changed in a cluster.
type history struct {
	trace *trace
	clock *clock
	judge func(do func(*judge.Judge))

	mu       sync.Mutex      // guards what follows
	written  map[string]bool // objects that the operator or a user has written
	states   trial.States
	progress time.Duration  // by clock, of the last change to a state that its object was not in before
	kinds    map[string]int // changes, of all clients, by kind
	version  uint64         // of the last change
}

func newHistory(t *trace, c *clock, look func(do func(*judge.Judge))) *history {
	return &history{trace: t, clock: c, judge: look, written: map[string]bool{}, kinds: map[string]int{}}
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
		h.written[what] = true
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

// of returns the state of a cluster. Normalize may change an object before that, or be nil.
func (h *history) of(objects []apiserver.Object, normalize func(*snapshot.Object) bool) state {
	s := state{written: map[string]struct{}{}}
	var names *strings.Replacer
	h.judge(func(j *judge.Judge) {
		names = j.Names()
		s.things = snapshot.Take(snapshot.Source{Objects: objects, Names: names, Made: j.Made, IsVersion: j.IsVersion, Normalize: normalize})
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range objects {
		if h.written[thing(o.Resource.GroupResource().String(), o.Namespace, o.Name)] {
			s.written[names.Replace(cluster.ObjectName(o.Resource, o.Namespace, cluster.CanonicalName(o.Name, o.Content)))] = struct{}{}
		}
	}
	return s
}

// isWritten reports whether the operator or a user has written a thing.
func (s state) isWritten(thing string) bool {
	thing, _, _ = strings.Cut(thing, " #") // the number of those that have the same name
	_, ok := s.written[thing]
	return ok
}

// renamed returns a state without the parts of names that differ between runs.
func (s state) renamed(names minted.Names) state {
	replacer := names.Replacer(slices.Collect(maps.Keys(s.things)))
	if replacer == nil {
		return s
	}
	all := state{things: s.things.Renamed(replacer), written: map[string]struct{}{}}
	for thing := range s.written {
		all.written[replacer.Replace(thing)] = struct{}{}
	}
	return all
}

// learnNames returns the names that differ between two runs without faults.
func learnNames(a, b []state) (names minted.Names) {
	for range mostSteps {
		var more minted.Names
		for i := range a {
			more = append(more, minted.Learn(a[i].renamed(names).things.Texts(), b[i].renamed(names).things.Texts())...)
		}
		if len(more) == 0 {
			break
		}
		names = append(names, more...)
	}
	return names
}

// mostSteps is how often names are learned from two runs: what has the name of another object in it
// is alike in both only when that is called the same.
const mostSteps = 4

// differences returns what is not as in another state, without what is known to differ by chance.
func (s state) differences(want state, chance map[string]bool) []oracle.Difference {
	return slices.DeleteFunc(want.things.Diff(s.things, chance), func(d oracle.Difference) bool {
		in := want
		if _, ok := want.things[d.Thing]; !ok {
			in = s
		}
		return !in.isWritten(d.Thing) || chance[snapshot.MaskKey(oracle.Difference{Thing: d.Thing})]
	})
}
