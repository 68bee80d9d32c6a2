// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A table has the objects of a controller by keys. Its zero value is empty.
type table struct {
	mu   sync.Mutex // for all below
	by   map[client.ObjectKey]map[client.ObjectKey]bool
	from map[client.ObjectKey][]client.ObjectKey // the keys of each object
}

// set replaces the keys of an object.
func (t *table) set(own client.ObjectKey, keys []client.ObjectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replace(own, keys)
}

// add adds a key of an object.
func (t *table) add(own, key client.ObjectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.from[own]; !slices.Contains(old, key) {
		t.replace(own, append(slices.Clip(old), key))
	}
}

// replace does what set does. The caller has the lock.
func (t *table) replace(own client.ObjectKey, keys []client.ObjectKey) {
	old := t.from[own]
	if slices.Equal(old, keys) {
		return
	}
	for _, key := range old {
		if delete(t.by[key], own); len(t.by[key]) == 0 {
			delete(t.by, key)
		}
	}
	if len(keys) == 0 {
		delete(t.from, own)
		return
	}
	if t.from == nil {
		t.from, t.by = make(map[client.ObjectKey][]client.ObjectKey), make(map[client.ObjectKey]map[client.ObjectKey]bool)
	}
	t.from[own] = keys
	for _, key := range keys {
		if t.by[key] == nil {
			t.by[key] = make(map[client.ObjectKey]bool)
		}
		t.by[key][own] = true
	}
}

// of returns requests for the objects that have one of the keys, in the order of their names.
func (t *table) of(keys []client.ObjectKey) []reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	var requests []reconcile.Request
	for _, key := range keys {
		for by := range t.by[key] {
			requests = append(requests, reconcile.Request{NamespacedName: by})
		}
	}
	slices.SortFunc(requests, func(a, b reconcile.Request) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(requests)
}
