// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An index knows the objects of each set, from the watches of their kinds. Without it, what has left
// a set would be found by listing all objects of the kinds.
type index struct {
	mu   sync.Mutex
	sets map[string]map[Ref]bool // by the value of SetLabel
}

// note records that an object exists, or is gone.
func (x *index) note(kind schema.GroupKind, before, now client.Object) {
	from, to := labelOf(before), labelOf(now)
	x.mu.Lock()
	defer x.mu.Unlock()
	if from != "" && from != to {
		refs := x.sets[from]
		if delete(refs, refOf(kind, client.ObjectKeyFromObject(before))); len(refs) == 0 {
			delete(x.sets, from)
		}
	}
	if to == "" {
		return
	}
	if x.sets == nil {
		x.sets = make(map[string]map[Ref]bool)
	}
	if x.sets[to] == nil {
		x.sets[to] = make(map[Ref]bool)
	}
	x.sets[to][refOf(kind, client.ObjectKeyFromObject(now))] = true
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
	refs := make([]Ref, 0, len(x.sets[label]))
	for ref := range maps.Keys(x.sets[label]) {
		refs = append(refs, ref)
	}
	return refs
}
