// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package references knows which objects name which others, from the events of a controller, and for
// which objects others were read. It is a package of its own because engines and shared controllers
// use it, packages step and handlers, and a watch finds its filter by the type.
package references

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An Index has the objects of a controller by the keys that they name. It is a predicate that lets
// everything pass, because predicates see events before the reconcile does: that reconcile sees
// what changes in between. Its exported fields are set before it is used; it is safe for concurrent
// use.
type Index[T client.Object] struct {
	// Named returns the keys of the objects that obj names. One without a name is ignored, one
	// without a namespace is in that of obj, if the named kind has namespaces.
	Named func(obj client.Object) []client.ObjectKey
	// NamedAs returns keys by which Named knows an object, besides its own. It may be nil.
	NamedAs func(named client.Object) []client.ObjectKey
	// Namespaced reports whether the named kind has namespaces. It is nil if that can't be known,
	// because the kind may come later.
	Namespaced func() bool

	table table
}

// Create implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (r *Index[T]) Create(ev event.CreateEvent) bool { return r.note(ev.Object, false) }

// Update implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (r *Index[T]) Update(ev event.UpdateEvent) bool { return r.note(ev.ObjectNew, false) }

// Delete implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (r *Index[T]) Delete(ev event.DeleteEvent) bool { return r.note(ev.Object, true) }

// Generic implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (r *Index[T]) Generic(ev event.GenericEvent) bool { return r.note(ev.Object, false) }

func (r *Index[T]) note(obj client.Object, gone bool) bool {
	typed, ok := obj.(T)
	if !ok {
		return true
	}
	var keys []client.ObjectKey
	if !gone {
		keys = r.keys(typed)
	}
	r.table.set(client.ObjectKeyFromObject(obj), keys)
	return true
}

// keys returns what an object names, complete. If it is not known whether the kind has namespaces,
// each key is there both with and without one.
func (r *Index[T]) keys(obj T) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, key := range r.Named(obj) {
		switch {
		case key.Name == "":
		case r.Namespaced == nil:
			keys = append(keys, InNamespaceOf(obj, key, true), InNamespaceOf(obj, key, false))
		default:
			keys = append(keys, InNamespaceOf(obj, key, r.Namespaced()))
		}
	}
	return keys
}

// InNamespaceOf returns key with the namespace of obj if it has none, and with none if its kind has
// none.
func InNamespaceOf(obj client.Object, key client.ObjectKey, namespaced bool) client.ObjectKey {
	switch {
	case !namespaced:
		key.Namespace = ""
	case key.Namespace == "":
		key.Namespace = obj.GetNamespace()
	}
	return key
}

// Naming returns requests for the objects that name one, in the order of their names.
func (r *Index[T]) Naming(_ context.Context, obj client.Object) []reconcile.Request {
	keys := []client.ObjectKey{client.ObjectKeyFromObject(obj)}
	if r.NamedAs != nil {
		keys = append(keys, r.NamedAs(obj)...)
	}
	return r.table.of(keys)
}
