// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/references"
)

// eachDeclared calls connect for each watch that a step declares.
func (e *Engine[T]) eachDeclared(connect func(w Watch, gvk schema.GroupVersionKind)) error {
	for _, p := range e.plan.parts {
		if p.Watches == nil {
			continue
		}
		watches := p.Watches()
		e.uses.setWatched(p.Name, watches)
		for _, w := range watches {
			gvk, err := e.options.Client.GroupVersionKindFor(w.Object)
			if err != nil {
				return fmt.Errorf("step %q watches %T: %w: register it with the scheme of the manager", p.Name, w.Object, err)
			}
			connect(w, gvk)
		}
	}
	return nil
}

// watchDeclared adds the watches that steps declare. It returns the kinds that may come later.
func (e *Engine[T]) watchDeclared(b *builder.Builder) (later []schema.GroupKind, err error) {
	err = e.eachDeclared(func(w Watch, gvk schema.GroupVersionKind) {
		missing := w.Later == nil && e.isMissing(gvk)
		if missing {
			w.Later = e.options.Cache
		}
		if w.Later == nil {
			e.watch(b, w, gvk.GroupKind())
			return
		}
		e.watchLater(b, w, gvk, e.handlerOf(w, gvk.GroupKind()), missing)
		later = append(later, gvk.GroupKind())
	})
	return later, err
}

// isMissing reports whether the API server does not have a kind that a step watches, so that the watch
// is one that may begin later.
func (e *Engine[T]) isMissing(gvk schema.GroupVersionKind) bool {
	_, err := e.options.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if !apimeta.IsNoMatchError(err) {
		return false
	}
	logger := log.Log.WithName(e.options.Name).WithValues("kind", gvk.String())
	if e.options.Cache == nil {
		logger.Info("The API server does not have a kind that is watched: the operator ends unless its definition comes within two minutes. " +
			"Set step.Options.Cache, so that only the objects which need it wait")
		return false
	}
	logger.Info("The API server does not have a kind that is watched: the objects which need it wait for its definition")
	return true
}

func (e *Engine[T]) watch(b *builder.Builder, w Watch, kind schema.GroupKind) {
	notes := builder.WithPredicates(noting{kind, w.Note, w.Changed})
	if w.NamedBy != nil {
		e.watchNamed(b, w.Object, &references.Index[T]{Named: w.NamedBy, NamedAs: w.NamedAs}, notes)
	}
	if w.Owned && w.Named == nil && !w.Read {
		b.Owns(w.Object, notes)
	} else if h := e.handlerOf(w, kind); h != nil {
		b.Watches(w.Object, h, notes)
	}
}

// handlerOf returns what handles the events of a watch, besides what NamedBy needs; nil if that is
// all. It is one handler, also of what is owned, named and read: with two watches, each event would be
// noted, and counted as a cause, twice.
func (e *Engine[T]) handlerOf(w Watch, kind schema.GroupKind) handler.EventHandler {
	switch {
	case !w.Read:
		return e.mapping(w)
	case w.Owned || w.Named != nil:
		return both(e.mapping(w), e.reading(w, kind))
	}
	return e.reading(w, kind)
}

// mapping returns what handles the events of what is owned and named.
func (e *Engine[T]) mapping(w Watch) handler.EventHandler {
	named := e.WrapHandler(handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if w.Named == nil {
			return nil
		}
		keys := w.Named(obj, e.resource.kind)
		requests := make([]reconcile.Request, len(keys))
		for i, key := range keys {
			requests[i].NamespacedName = key
		}
		return requests
	}))
	if w.Owned {
		c := e.options.Client
		owner := handler.EnqueueRequestForOwner(c.Scheme(), c.RESTMapper(), e.resource.newObject(), handler.OnlyControllerOwner())
		if w.Named == nil {
			return owner
		}
		return both(owner, named)
	}
	if w.Named == nil && w.NamedBy != nil {
		return nil
	}
	return named
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
func (n noting) Update(ev event.UpdateEvent) bool { return n.changed(ev.ObjectOld, ev.ObjectNew) }

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
