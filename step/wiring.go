// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ctrlkit/ctrlkit/internal/references"
)

// A Wiring is what a program connects an engine to that feeds it with events of its own, such as
// package handlers. [Engine.Complete] does it for a controller.
type Wiring struct {
	// Filters see the events of the reconciled objects and of all watched ones, before any of them
	// triggers a reconcile. They let all events pass.
	Filters []predicate.Predicate
	// Watches are what the steps declare.
	Watches []WiredWatch
}

// A WiredWatch is one watch of a [Wiring].
type WiredWatch struct {
	// Object is of the watched kind.
	Object client.Object
	// Filter sees the events after the filters of the wiring, and drops those that trigger nothing.
	Filter predicate.Predicate
	// Handler adds requests to the queue.
	Handler handler.EventHandler
}

// Wire returns what the engine is to be connected to. It is called once, instead of
// [Engine.Complete]. The error names a watch of a kind that the scheme does not have.
//
// Watched are the reconciled kind and all other kinds of which the caller requests reconciles by
// itself, as empty objects. With them, the engine reports a kind that steps read and nothing
// watches, as that of [Engine.Complete] does; without any it does not.
//
// The caller passes each event of the reconciled kind, and of the watched ones, to the filters, after
// the cache of Options.Client has it.
func (e *Engine[T]) Wire(watched ...client.Object) (Wiring, error) {
	kinds, err := kindsOf(e.options.Client, watched)
	if err != nil {
		return Wiring{}, err
	}
	w := Wiring{Filters: []predicate.Predicate{e.EventFilter()}}
	var owned []schema.GroupKind
	err = e.eachDeclared(func(watch Watch, gvk schema.GroupVersionKind) {
		if onlyOwned(watch) {
			owned = append(owned, gvk.GroupKind())
		} else {
			kinds = append(kinds, gvk.GroupKind())
		}
		filter := noting{gvk.GroupKind(), watch.Note, watch.Changed}
		if watch.NamedBy != nil {
			r := &references.Index[T]{Named: watch.NamedBy, NamedAs: watch.NamedAs}
			if watch.Later == nil {
				r.Namespaced = sync.OnceValue(func() bool { return namespaced(e.options.Client, watch.Object) })
			}
			w.Filters = append(w.Filters, r)
			w.Watches = append(w.Watches, WiredWatch{watch.Object, filter, e.WrapHandler(handler.EnqueueRequestsFromMapFunc(r.Naming))})
		}
		if h := e.handlerOf(watch, gvk.GroupKind()); h != nil {
			w.Watches = append(w.Watches, WiredWatch{watch.Object, filter, h})
		}
	})
	if err != nil {
		return Wiring{}, err
	}
	e.sees = true
	if len(watched) > 0 {
		e.unwatched.watch(e.resource.kind, kinds, owned)
	}
	return w, nil
}
