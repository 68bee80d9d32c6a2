// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
	progress time.Duration             // by clock, of the last change to a state that its object was not in before
	all      int                       // changes, of all clients
	kinds    map[string]int            // the same, by kind
	version  uint64                    // of the last change
	users    map[string]map[string]any // objects that users have created and not deleted, as they were then
	children map[string]bool           // objects that the operator has created
	statuses map[string]types.UID      // objects of users that have a status
	orphans  map[types.UID]bool        // what a deletion of its owner has left, and whether the operator has used it
}

func newHistory(t *trace, c *clock, look func(do func(*judge.Judge))) *history {
	return &history{trace: t, clock: c, judge: look, written: map[string]bool{}, kinds: map[string]int{}, users: map[string]map[string]any{}, children: map[string]bool{}, statuses: map[string]types.UID{}, orphans: map[types.UID]bool{}}
}

func thing(resource, namespace, name string) string {
	return resource + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// changed takes a change of the cluster, which is one of its objects that operators work with.
func (h *history) changed(c apiserver.Change) {
	resource := c.Resource.GroupResource()
	what, named := thing(resource.String(), c.Namespace, c.Name), cluster.ObjectName(c.Resource, c.Namespace, c.Name)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version = c.ResourceVersion
	operator := trial.IsOperator(c.Actor)
	if operator || c.Actor == trial.UserActor || c.Actor == otherActor {
		h.written[what] = true
	}
	if !operator {
		h.trace.add(c.Actor, "write", strings.ToLower(c.Type)+" "+what)
	}
	h.all++
	h.kinds[resource.String()]++
	switch c.Type {
	case "ADDED":
		h.children[what] = operator
		if c.Actor == trial.UserActor && mayBeRecreated(c) {
			h.users[named] = c.New
		}
	case "DELETED":
		delete(h.users, named)
	default:
		if written := h.users[named]; written != nil && c.Actor == trial.UserActor {
			h.users[named] = cluster.Rewritten(written, c)
		}
		if (&unstructured.Unstructured{Object: c.New}).GetDeletionTimestamp() != nil {
			delete(h.users, named)
		}
	}
	delete(h.statuses, named)
	if status, _ := c.New["status"].(map[string]any); len(status) > 0 && h.users[named] != nil && c.Type != "DELETED" {
		h.statuses[named] = c.UID
	}
	if _, left := h.orphans[c.UID]; left && operator {
		h.orphans[c.UID] = true
	}
	if _, isNew := h.states.Enter(c); isNew {
		h.progress = h.clock.now()
	}
}

// mayBeRecreated reports whether a user who deletes an object can create it again as it was: what
// is in a Namespace is gone with it, and what holds a finalizer of another client does not go.
func mayBeRecreated(c apiserver.Change) bool {
	return c.Resource.Resource != "namespaces" && len((&unstructured.Unstructured{Object: c.New}).GetFinalizers()) == 0
}

// idle returns for how long, by clock, nothing new has happened.
func (h *history) idle() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.now() - h.progress
}

// count returns how often the cluster has changed.
func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
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

// ofUsers returns the objects that users have created and that are not being deleted, as plans name them.
func (h *history) ofUsers() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.users))
}

// withStatus returns those of them that have a status.
func (h *history) withStatus() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.statuses))
}

// uidOf returns the UID of one of them; "" if it has no status.
func (h *history) uidOf(what string) types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.statuses[what]
}

// withholdable returns the Secrets and ConfigMaps among those of users.
func (h *history) withholdable() []string {
	return slices.DeleteFunc(h.ofUsers(), func(what string) bool { return !cluster.IsWithholdable(what) })
}

// orphaned notes what a deletion of its owner has left.
func (h *history) orphaned(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orphans[uid] = false
}

// usesOrphan reports whether the operator has changed such an object.
func (h *history) usesOrphan(uid types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.orphans[uid]
}

// created returns an object as its user has created it; nil if there is none of the name.
func (h *history) created(what string) map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.users[what]
}

// isChild reports whether the operator has created an object.
func (h *history) isChild(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.children[what]
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
