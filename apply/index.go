// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An index knows the objects of each set, from the watches of their kinds. Without it, what has left
// a set would be found by listing all objects of the kinds.
//
// It also knows which objects of others are in the way of which owners: neither an owner reference
// nor an annotation leads from them to the owner that waits for their change.
type index struct {
	mu       sync.Mutex                // guards all below
	sets     map[string]*members       // by the value of SetLabel
	changes  uint64                    // of all sets
	shown    map[schema.GroupKind]bool // of which an object of a set was seen
	blockers map[blocker]map[client.ObjectKey]bool
}

// members are the objects of one set.
type members struct {
	refs    []Ref  // few, so that a map would be larger
	changed uint64 // number of the last change among those of all sets
}

// A blocker is an object of another owner that has the name of one that is wanted, or one that is
// being deleted.
type blocker struct {
	kind *kind
	key  client.ObjectKey
}

// hasShown reports whether an object of a set was seen of a kind. Nil has no watches.
func (x *index) hasShown(kind schema.GroupKind) bool {
	if x == nil {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shown[kind]
}

// block records that an object is in the way of an owner. It reports whether that is new: then the
// object is to be read again, because a change of it just before had no effect.
func (x *index) block(kind *kind, key, owner client.ObjectKey) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	owners := x.blockers[blocker{kind, key}]
	if owners[owner] {
		return false
	}
	if owners == nil {
		if x.blockers == nil {
			x.blockers = make(map[blocker]map[client.ObjectKey]bool)
		}
		owners = make(map[client.ObjectKey]bool, 1)
		x.blockers[blocker{kind, key}] = owners
	}
	owners[owner] = true
	return true
}

// unblock returns the owners in whose way an object was that has changed.
func (x *index) unblock(kind *kind, key client.ObjectKey) []client.ObjectKey {
	x.mu.Lock()
	defer x.mu.Unlock()
	owners := x.blockers[blocker{kind, key}]
	delete(x.blockers, blocker{kind, key})
	keys := make([]client.ObjectKey, 0, len(owners))
	for key := range owners {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// note records that an object exists, or is gone.
func (x *index) note(kind schema.GroupKind, before, now client.Object) {
	from, to := labelOf(before), labelOf(now)
	x.mu.Lock()
	defer x.mu.Unlock()
	if from != "" && from != to {
		x.change(from, refOf(kind, client.ObjectKeyFromObject(before)), false)
	}
	if to != "" {
		if !x.shown[kind] {
			if x.shown == nil {
				x.shown = make(map[schema.GroupKind]bool, 1)
			}
			x.shown[kind] = true
		}
		x.change(to, refOf(kind, client.ObjectKeyFromObject(now)), true)
	}
}

// change adds an object to a set, or removes it.
func (x *index) change(label string, ref Ref, there bool) {
	set := x.sets[label]
	if set == nil {
		if x.sets == nil {
			x.sets = make(map[string]*members)
		}
		set = &members{}
		x.sets[label] = set
	}
	i := slices.Index(set.refs, ref)
	if i >= 0 == there {
		return
	}
	x.changes++
	set.changed = x.changes
	if there {
		if n := len(set.refs); n < 8 { // most sets are small, and there is one for each object
			set.refs = append(make([]Ref, 0, n+1), set.refs...)
		}
		set.refs = append(set.refs, ref)
		return
	}
	if set.refs = slices.Delete(set.refs, i, i+1); len(set.refs) == 0 {
		delete(x.sets, label)
	}
}

func labelOf(obj client.Object) string {
	if obj == nil {
		return ""
	}
	return obj.GetLabels()[SetLabel]
}

// of returns the objects of a set.
func (x *index) of(label string) []Ref {
	x.mu.Lock()
	defer x.mu.Unlock()
	if set := x.sets[label]; set != nil {
		return slices.Clone(set.refs)
	}
	return nil
}

// changed returns a number that differs after each change of what is in a set: zero for one that is
// empty, and otherwise one that grows by so much that nothing which is added to it makes up for it.
func (x *index) changed(label string) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if set := x.sets[label]; set != nil {
		return set.changed << 32
	}
	return 0
}
