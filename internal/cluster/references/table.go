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
	by   map[client.ObjectKey]holders
	from map[client.ObjectKey][]client.ObjectKey // the keys of each object
}

// holders are the objects that have a key: one, as of most keys, without a map of its own.
type holders struct {
	one  client.ObjectKey
	more map[client.ObjectKey]bool // besides one
}

// with returns the holders and another one. Those without any are the zero value.
func (h holders) with(own client.ObjectKey) holders {
	switch {
	case h.one == own:
	case h.one == client.ObjectKey{}:
		h.one = own
	case h.more == nil:
		h.more = map[client.ObjectKey]bool{own: true}
	default:
		h.more[own] = true
	}
	return h
}

// without returns the holders but one.
func (h holders) without(own client.ObjectKey) holders {
	if h.one != own {
		delete(h.more, own)
		return h
	}
	h.one = client.ObjectKey{}
	for other := range h.more {
		h.one = other
		delete(h.more, other)
		break
	}
	return h
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
		if t.by[key] = t.by[key].without(own); t.by[key].one == (client.ObjectKey{}) {
			delete(t.by, key)
		}
	}
	if len(keys) == 0 {
		delete(t.from, own)
		return
	}
	if t.from == nil {
		t.from, t.by = make(map[client.ObjectKey][]client.ObjectKey), make(map[client.ObjectKey]holders)
	}
	t.from[own] = keys
	for _, key := range keys {
		t.by[key] = t.by[key].with(own)
	}
}

// of returns requests for the objects that have one of the keys, in the order of their names.
func (t *table) of(keys []client.ObjectKey) []reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	var requests []reconcile.Request
	for _, key := range keys {
		h := t.by[key]
		if h.one == (client.ObjectKey{}) {
			continue
		}
		requests = append(requests, reconcile.Request{NamespacedName: h.one})
		for by := range h.more {
			requests = append(requests, reconcile.Request{NamespacedName: by})
		}
	}
	slices.SortFunc(requests, func(a, b reconcile.Request) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(requests)
}
