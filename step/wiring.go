// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/internal/engine/wiring"
)

// Wire returns what a controller is connected to for the watch. It is for package handlers, and for
// engines: an author declares watches. The error is a mistake in the watch.
func (w Watch) Wire(to wiring.Target) (wiring.Watch, error) {
	gvk, err := w.check(to)
	if err != nil {
		return wiring.Watch{}, err
	}
	w = w.guarded(to.Log)
	m := mapping{watch: w, to: to}
	wired := wiring.Watch{Object: w.Object, Kind: gvk, Filter: noting{gvk.GroupKind(), w.Note, w.Changed}, Notes: w.Note != nil, OnlyOwned: onlyOwned(w), Indexes: w.Indexes}
	if w.NamedBy != nil {
		m.index = &references.Index{Own: to.Own, Named: w.NamedBy, NamedAs: w.NamedAs, Scope: references.NewScope(to.Client, w.Object)}
		wired.Index = m.index
	}
	if w.Read && to.Readers != nil {
		m.readers = to.Readers(gvk.GroupKind())
	}
	wired.Handler = m.handler()
	return wired, nil
}

// check returns the kind of a watch, and what is wrong with it.
func (w Watch) check(to wiring.Target) (schema.GroupVersionKind, error) {
	var none schema.GroupVersionKind
	switch {
	case w.Object == nil || reflect.ValueOf(w.Object).IsNil():
		return none, errors.New("no watched object: use an empty one of the kind, such as &corev1.Secret{}")
	case !w.Owned && w.Mapped == nil && w.NamedBy == nil && !w.Read && w.Note == nil:
		return none, fmt.Errorf("watch of %T: it requests nothing: make it with WatchOwned, WatchLabeled, WatchMapped or WatchNamed, whose label or function is not empty", w.Object)
	case w.namedBy != nil && w.namedBy != to.Type:
		return none, fmt.Errorf("watch of %T: the function of WatchNamed is for %v, and the reconciled objects are %v", w.Object, w.namedBy, to.Type)
	}
	gvk, err := to.Client.GroupVersionKindFor(w.Object)
	if err != nil {
		return none, fmt.Errorf("watch of %T: %w: register it with the scheme of the manager", w.Object, err)
	}
	return gvk, nil
}

// guarded returns the watch with functions whose panics are logged: informers call them, on which
// other controllers depend.
func (w Watch) guarded(log logr.Logger) Watch {
	inner := w
	if inner.Mapped != nil {
		w.Mapped = func(obj client.Object, kind schema.GroupKind) []client.ObjectKey {
			defer caught(log, obj)
			return inner.Mapped(obj, kind)
		}
	}
	if inner.NamedBy != nil {
		w.NamedBy = func(obj client.Object) []client.ObjectKey {
			defer caught(log, obj)
			return inner.NamedBy(obj)
		}
	}
	if inner.NamedAs != nil {
		w.NamedAs = func(watched client.Object) []client.ObjectKey {
			defer caught(log, watched)
			return inner.NamedAs(watched)
		}
	}
	if inner.Changed != nil {
		w.Changed = func(before, now client.Object) bool {
			defer caught(log, either(now, before))
			return inner.Changed(before, now)
		}
	}
	if inner.Note != nil {
		w.Note = func(kind schema.GroupKind, before, now client.Object) {
			defer caught(log, either(now, before))
			inner.Note(kind, before, now)
		}
	}
	return w
}

func either(now, before client.Object) client.Object {
	if now == nil {
		return before
	}
	return now
}

// caught is deferred by the functions of a watch.
func caught(log logr.Logger, obj client.Object) {
	if value := recover(); value != nil {
		log.Error(fmt.Errorf("panic: %v", value), "A function of a watch has panicked, and requests nothing",
			"of", fmt.Sprintf("%T", obj), "object", client.ObjectKeyFromObject(obj).String(), "stack", string(debug.Stack()))
	}
}

// A mapping leads from a watched object to the reconciled ones that its changes concern.
type mapping struct {
	watch   Watch
	to      wiring.Target
	index   *references.Index   // nil without NamedBy
	readers *references.Readers // nil without Read
}

// handler returns what handles the events of the watch. It is one handler, whatever the watch is for:
// with two watches, each event would be noted, and counted as a cause, twice.
func (m *mapping) handler() handler.EventHandler {
	others := handler.EnqueueRequestsFromMapFunc(m.others)
	owners := handler.EnqueueRequestsFromMapFunc(m.owners)
	switch {
	case m.to.Wrap == nil:
		return nil // it is only checked
	case !m.watch.Owned:
		return m.to.Wrap(others)
	case !m.to.RecordsChildren:
		return m.to.Wrap(both(owners, others))
	}
	return both(owners, m.to.Wrap(others))
}

// owners returns the controller of an object, if it is of the reconciled kind.
func (m *mapping) owners(_ context.Context, obj client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != m.to.Kind.Kind || track.GroupOf(owner.APIVersion) != m.to.Kind.Group {
		return nil
	}
	return m.requests(obj, []client.ObjectKey{{Name: owner.Name}})
}

// others returns what a change requests besides the reconcile of the owner.
func (m *mapping) others(ctx context.Context, obj client.Object) []reconcile.Request {
	var all []reconcile.Request
	if m.watch.Mapped != nil {
		all = m.requests(obj, m.watch.Mapped(obj, m.to.Kind))
	}
	if m.index != nil {
		all = append(all, m.index.Naming(ctx, obj)...)
	}
	if m.readers != nil {
		all = append(all, m.readers.Naming(ctx, obj)...)
	}
	if !m.watch.Owned {
		return all
	}
	owners := m.owners(ctx, obj)
	return slices.DeleteFunc(all, func(r reconcile.Request) bool { return slices.Contains(owners, r) })
}

// requests returns requests for reconciled objects, whose keys need not be complete.
func (m *mapping) requests(obj client.Object, keys []client.ObjectKey) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(keys))
	for _, key := range keys {
		if key.Name != "" {
			requests = append(requests, reconcile.Request{NamespacedName: references.InNamespaceOf(obj, key, m.to.Namespaced())})
		}
	}
	return requests
}

// both returns a handler of events that passes each to two.
func both(one, two handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, ev event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			one.Create(ctx, ev, q)
			two.Create(ctx, ev, q)
		},
		UpdateFunc: func(ctx context.Context, ev event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			one.Update(ctx, ev, q)
			two.Update(ctx, ev, q)
		},
		DeleteFunc: func(ctx context.Context, ev event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			one.Delete(ctx, ev, q)
			two.Delete(ctx, ev, q)
		},
		GenericFunc: func(ctx context.Context, ev event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			one.Generic(ctx, ev, q)
			two.Generic(ctx, ev, q)
		},
	}
}

// noting is a predicate that notes what exists, and lets the events pass that request reconciles.
type noting struct {
	kind   schema.GroupKind
	note   func(kind schema.GroupKind, before, now client.Object) // may be nil
	passes func(before, now client.Object) bool                   // nil if all do
}

// Create implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (n noting) Create(ev event.CreateEvent) bool { return n.changed(nil, ev.Object) }

// Update implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (n noting) Update(ev event.UpdateEvent) bool {
	return n.changed(ev.ObjectOld, ev.ObjectNew) && !repeats(ev)
}

// Delete implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (n noting) Delete(ev event.DeleteEvent) bool { return n.changed(ev.Object, nil) }

// Generic implements [sigs.k8s.io/controller-runtime/pkg/predicate.Predicate].
func (n noting) Generic(event.GenericEvent) bool { return true }

func (n noting) changed(before, now client.Object) bool {
	if n.note != nil {
		n.note(n.kind, before, now)
	}
	return n.passes == nil || n.passes(before, now)
}

// repeats reports whether an event has what the cache had already, as those of a resync and of a new
// list do.
func repeats(ev event.UpdateEvent) bool {
	return ev.ObjectOld != nil && ev.ObjectNew != nil && ev.ObjectOld.GetUID() == ev.ObjectNew.GetUID() &&
		ev.ObjectNew.GetResourceVersion() != "" && ev.ObjectOld.GetResourceVersion() == ev.ObjectNew.GetResourceVersion()
}
