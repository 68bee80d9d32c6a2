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
type Index struct {
	// Own reports whether an object is one of the controller: an index may see the events of others,
	// too. Nil is true for all.
	Own func(obj client.Object) bool
	// Named returns the keys of the objects that obj names. One without a name is ignored, one
	// without a namespace is in that of obj, if the named kind has namespaces.
	Named func(obj client.Object) []client.ObjectKey
	// NamedAs returns keys by which Named knows an object, besides its own. It may be nil.
	NamedAs func(named client.Object) []client.ObjectKey
	// Scope is that of the named kind. Nil is one that is not known.
	Scope *Scope

	table table
}

// Create implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (r *Index) Create(ev event.CreateEvent) bool { return r.note(ev.Object, false) }

// Update implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (r *Index) Update(ev event.UpdateEvent) bool { return r.note(ev.ObjectNew, false) }

// Delete implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (r *Index) Delete(ev event.DeleteEvent) bool { return r.note(ev.Object, true) }

// Generic implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (r *Index) Generic(ev event.GenericEvent) bool { return r.note(ev.Object, false) }

func (r *Index) note(obj client.Object, gone bool) bool {
	if r.Own != nil && !r.Own(obj) {
		return true
	}
	var keys []client.ObjectKey
	if !gone {
		keys = r.keys(obj)
	}
	r.table.set(client.ObjectKeyFromObject(obj), keys)
	return true
}

// keys returns what an object names, complete. If it is not known whether the kind has namespaces,
// because it may come later, each key is there both with and without one.
func (r *Index) keys(obj client.Object) []client.ObjectKey {
	var keys []client.ObjectKey
	namespaced, known := r.Scope.Known()
	for _, key := range r.Named(obj) {
		switch {
		case key.Name == "":
		case known:
			keys = append(keys, InNamespaceOf(obj, key, namespaced))
		default:
			keys = append(keys, InNamespaceOf(obj, key, true), InNamespaceOf(obj, key, false))
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
func (r *Index) Naming(_ context.Context, obj client.Object) []reconcile.Request {
	keys := []client.ObjectKey{client.ObjectKeyFromObject(obj)}
	if r.NamedAs != nil {
		keys = append(keys, r.NamedAs(obj)...)
	}
	return r.table.of(keys)
}
