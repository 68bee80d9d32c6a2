// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An index knows the objects of each set, from the watches of their kinds. Without it, what has left
// a set would be found by listing all objects of the kinds.
type index struct {
	mu      sync.Mutex
	sets    map[string]*members // by the value of SetLabel
	changes uint64              // of all sets
}

// members are the objects of one set.
type members struct {
	refs    map[Ref]bool
	changed uint64 // number of the last change among those of all sets
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
		set = &members{refs: make(map[Ref]bool)}
		x.sets[label] = set
	}
	if set.refs[ref] == there {
		return
	}
	x.changes++
	set.changed = x.changes
	if there {
		set.refs[ref] = true
		return
	}
	if delete(set.refs, ref); len(set.refs) == 0 {
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
		return slices.Collect(maps.Keys(set.refs))
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
