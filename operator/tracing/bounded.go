// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"container/list"
	"sync"
)

// A bounded is a map with a limit: when there are more keys, the oldest is removed.
type bounded[K comparable, V any] struct {
	limit int

	mu       sync.Mutex // for all below
	elements map[K]*list.Element
	order    *list.List // of *pair, the oldest in front
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

func newBounded[K comparable, V any](limit int) *bounded[K, V] {
	return &bounded[K, V]{limit: limit, elements: make(map[K]*list.Element), order: list.New()}
}

// get returns the value of a key, and whether there is one.
func (b *bounded[K, V]) get(key K) (V, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if element, ok := b.elements[key]; ok {
		return element.Value.(*pair[K, V]).value, true //nolint:errcheck // nothing else is in the list
	}
	var none V
	return none, false
}

// take is get, and removes the key.
func (b *bounded[K, V]) take(key K) (V, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if element, ok := b.elements[key]; ok {
		return b.remove(element).value, true
	}
	var none V
	return none, false
}

// put sets the value of a key, and returns the value that was removed for it, if any.
func (b *bounded[K, V]) put(key K, value V) (dropped V, ok bool) {
	return b.update(key, func(V) V { return value })
}

// update is put with the result of change, which gets the value of the key or the zero value.
func (b *bounded[K, V]) update(key K, change func(V) V) (dropped V, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if element, ok := b.elements[key]; ok {
		p := element.Value.(*pair[K, V]) //nolint:errcheck // nothing else is in the list
		p.value = change(p.value)
		return dropped, false
	}
	b.elements[key] = b.order.PushBack(&pair[K, V]{key, change(dropped)})
	if b.order.Len() <= b.limit {
		return dropped, false
	}
	return b.remove(b.order.Front()).value, true
}

// remove removes an element. The lock is held.
func (b *bounded[K, V]) remove(element *list.Element) *pair[K, V] {
	p := b.order.Remove(element).(*pair[K, V]) //nolint:errcheck // nothing else is in the list
	delete(b.elements, p.key)
	return p
}
