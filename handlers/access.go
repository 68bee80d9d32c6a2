// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Kind is the access to one kind of a registry: its cache, with types, and its queue. It is made
// by [KindOf], cheap to make, and safe for concurrent use. All reads are from the cache, and
// return copies.
type Kind[T client.Object] struct {
	registry *Registry
	key      kindKey
	object   client.Object
}

// KindOf returns the access to the kind of T. For a T that can stand for any kind it needs one, and
// it panics without: that is a mistake of the program that no input can cause.
func KindOf[T client.Object](r *Registry, kind ...schema.GroupVersionKind) Kind[T] {
	var gvk schema.GroupVersionKind
	if len(kind) > 0 {
		gvk = kind[0]
	}
	obj, err := newObject[T](gvk)
	if err != nil {
		panic("handlers.KindOf: " + err.Error())
	}
	key, err := keyOf(obj, r.scheme)
	if err != nil {
		panic("handlers.KindOf: " + err.Error())
	}
	return Kind[T]{r, key, obj}
}

// Get returns an object. The error is one of package apierrors if there is none.
func (k Kind[T]) Get(ctx context.Context, name client.ObjectKey) (T, error) {
	obj := newOf(k.object).(T) //nolint:errcheck // it is the type
	err := k.registry.Client().Get(ctx, name, obj)
	return obj, err
}

// List returns objects, in no order.
func (k Kind[T]) List(ctx context.Context, options ...client.ListOption) ([]T, error) {
	list, err := newListOf(k.object, k.registry.scheme)
	if err != nil {
		return nil, err
	}
	if err := k.registry.Client().List(ctx, list, options...); err != nil {
		return nil, err
	}
	all := make([]T, 0, apimeta.LenList(list))
	err = apimeta.EachListItem(list, func(item runtime.Object) error {
		all = append(all, item.(T)) //nolint:errcheck // the list has no others
		return nil
	})
	return all, err
}

// AddIndex adds an index to the cache of the kind: values returns those of an object, which it must
// not change. Names of indexes are shared by all packages of the process: begin them with that of
// the package. It may be called before the manager starts and after that, once for each name.
func (k Kind[T]) AddIndex(ctx context.Context, name string, values func(obj T) []string) error {
	err := k.registry.cache.IndexField(ctx, newOf(k.object), name, func(obj client.Object) []string {
		return values(obj.(T)) //nolint:errcheck // the cache of the kind has no others
	})
	if err != nil {
		return fmt.Errorf("index %q of %s: %w", name, k.key, err)
	}
	return nil
}

// ListIndexed returns the objects that have a value in an index, in no order.
func (k Kind[T]) ListIndexed(ctx context.Context, index, value string, options ...client.ListOption) ([]T, error) {
	return k.List(ctx, append(options, client.MatchingFields{index: value})...)
}

// ErrNoHandler says that a kind has no handler that could be called.
var ErrNoHandler = errors.New("the kind has no handler")

// Enqueue has all handlers of the kind be called for objects, as soon as a worker is free: also
// those that wait for the backoff of a failure. An object that does not exist is one that is gone.
func (k Kind[T]) Enqueue(names ...client.ObjectKey) error { return k.EnqueueAfter(0, names...) }

// EnqueueAfter is [Kind.Enqueue] after some time. When a handler is called before, the time is
// forgotten.
func (k Kind[T]) EnqueueAfter(after time.Duration, names ...client.ObjectKey) error {
	r := k.registry
	r.mu.Lock()
	c := r.kinds[k.key]
	r.mu.Unlock()
	if c == nil {
		return fmt.Errorf("enqueuing %s: %w", k.key, ErrNoHandler)
	}
	for _, name := range names {
		for _, e := range *c.handlers.Load() {
			c.due.add(name, call{entry: e, at: time.Now().Add(after)})
		}
	}
	for _, name := range names { // when all are due, so that one which is there twice is called once
		c.later(name, after)
	}
	return nil
}
