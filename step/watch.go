// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/state"
)

// A Watch says for which objects of another kind there are reconciles when they change, and of what.
// [WatchOwned], [WatchLabeled], [WatchNamed] and [WatchMapped] make the common ones. It means the same
// among the Watches of a [Step], in [Options] and for a handler of package handlers:
//
//   - A change requests reconciles for the object as it was and as it is: of the owner before, too,
//     when an object changes hands.
//   - An object that the cache repeats, unchanged, requests none.
//   - A function that panics is logged, and requests nothing.
type Watch struct {
	// Object has the type that is watched.
	Object client.Object
	// Owned requests a reconcile of the controller of each object that changes, as
	// builder.Builder.Owns does. The version of the owner's kind does not count.
	Owned bool
	// Mapped returns which of the reconciled objects, which are of kind, a watched one is for. It
	// depends on nothing but obj, and does not change it. A key without a name is ignored; one without
	// a namespace is in that of obj, if the reconciled kind has namespaces. It may be nil.
	Mapped func(obj client.Object, kind schema.GroupKind) []client.ObjectKey
	// NamedBy returns the keys of the watched objects on which a reconciled one depends. It
	// is reconciled when one of them changes, as with [WatchNamed], which says what the
	// function may do. It may be nil.
	NamedBy func(obj client.Object) []client.ObjectKey
	// NamedAs returns keys by which NamedBy knows a watched object, besides its own: one of each of
	// its labels, for objects that depend on all that have a label. Such keys have names that no
	// object can have, such as "app=shop". It may be nil.
	NamedAs func(watched client.Object) []client.ObjectKey
	// Read requests a reconcile of each object for which the steps have read the watched one by its
	// name, through Request.Client or Request.APIReader, when they ran last: also if it was not there.
	// It is for what only the code of a step knows, such as which Secret has the credentials. Which
	// object has read which is kept in memory. A plain handler of package handlers has no steps, and
	// can't have it.
	Read bool
	// Changed reports whether a change requests reconciles. Before is nil for an object that was
	// not there, as all of them are when the watch begins, now for one that is gone. It is for
	// kinds that change often in what no step reads. It may be nil: then every change does.
	Changed func(before, now client.Object) bool
	// Later is the cache of the manager if the definition of the kind may come after the operator
	// has started. The controller does not wait for such a watch, which begins at most ten seconds
	// after the API server has the kind. Event filters of the builder do not apply to it. With
	// Options.Cache, which is for all watches of an engine, it need not be set, nor in package
	// handlers, which waits for every kind.
	Later cache.Cache
	// Note is called for each object that exists, changes or is gone, before the reconcile that
	// this requests. Before is nil for an object that was not there, now for one that is gone. It
	// may be nil.
	Note func(kind schema.GroupKind, before, now client.Object)
	// Indexes have the cache find objects of the kind, for steps that list some of many:
	//
	//	client.MatchingFields{index.Name: value}
	//
	// Options.Cache keeps them, or the cache of the registry of package handlers. Without either, such
	// a list fails.
	Indexes []state.Index[client.Object]

	namedBy reflect.Type // the type of objects that NamedBy takes, nil if it takes any
}

// WatchOwned returns a watch for objects whose controller is a reconciled one, by an owner reference.
// Children of package apply are watched without it.
func WatchOwned(watched client.Object) Watch { return Watch{Object: watched, Owned: true} }

// WatchLabeled returns a watch for objects with a label whose value is the name of a reconciled one: in
// the same namespace, or without one if the reconciled objects have none.
func WatchLabeled(watched client.Object, label string) Watch {
	w := Watch{Object: watched}
	if label != "" {
		w.Mapped = func(obj client.Object, _ schema.GroupKind) []client.ObjectKey {
			return []client.ObjectKey{{Name: obj.GetLabels()[label]}}
		}
	}
	return w
}

// WatchMapped returns a watch for objects of which a function says which of the reconciled ones they
// are for, as handler.EnqueueRequestsFromMapFunc does. See Mapped of [Watch] for what it returns:
//
//	step.WatchMapped(&corev1.Namespace{}, func(ns *corev1.Namespace) []client.ObjectKey {
//		return []client.ObjectKey{{Namespace: "projects", Name: ns.Labels["project"]}}
//	})
func WatchMapped[W client.Object](watched W, keys func(obj W) []client.ObjectKey) Watch {
	w := Watch{Object: watched}
	if keys != nil {
		w.Mapped = func(obj client.Object, _ schema.GroupKind) []client.ObjectKey {
			return keys(obj.(W)) //nolint:errcheck // a watch of the kind has no others
		}
	}
	return w
}

// WatchNamed returns a watch for objects that the reconciled ones name: a change of such an object
// triggers a reconcile of those that name it.
//
//	readPassword := step.Step[*v1.Database]{
//		Name: "ReadPassword", Do: read,
//		Watches: func() []step.Watch { return []step.Watch{step.WatchNamed(&corev1.Secret{}, passwords)} },
//	}
//
//	func passwords(db *v1.Database) []client.ObjectKey { return []client.ObjectKey{{Name: db.Spec.PasswordSecret}} }
//
// Named returns the keys of the objects that obj names. It depends on nothing but obj, and does not
// change it. A key without a name is ignored; one without a namespace is in that of obj, if the
// watched kind has namespaces. Which object names which is kept in memory, from the events of the
// controller: nothing is listed, and no index of the cache is needed.
func WatchNamed[T client.Object](watched client.Object, named func(obj T) []client.ObjectKey) Watch {
	w := Watch{Object: watched, namedBy: reflect.TypeFor[T]()}
	if named != nil {
		w.NamedBy = func(obj client.Object) []client.ObjectKey {
			return named(obj.(T)) //nolint:errcheck // the type is checked
		}
	}
	return w
}
