// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import "sigs.k8s.io/controller-runtime/pkg/client"

// A Key identifies a value that a step passes to later steps of the same reconcile. Two keys are
// different even if they have the same name.
//
//	var quotient = step.NewKey[int]("quotient")
//	...
//	step.Put(req, quotient, 42)
//	q, ok := step.Lookup(req, quotient)
type Key[V any] struct{ name *string }

// NewKey returns a key. The name is for messages.
func NewKey[V any](name string) Key[V] { return Key[V]{&name} }

// String returns the name of the key.
func (k Key[V]) String() string { return *k.name }

// Put passes a value to later steps of the reconcile. It is safe for concurrent use, as [Lookup]
// is; the value itself is not copied.
func Put[V any, T client.Object](req *Request[T], key Key[V], value V) {
	req.mu.Lock()
	defer req.mu.Unlock()
	if req.data == nil {
		req.data = make(map[any]any)
	}
	req.data[key.name] = value
}

// Lookup returns the value that an earlier step of the same reconcile has put, and reports whether
// there is one.
func Lookup[V any, T client.Object](req *Request[T], key Key[V]) (V, bool) {
	req.mu.Lock()
	defer req.mu.Unlock()
	v, ok := req.data[key.name].(V)
	return v, ok
}
