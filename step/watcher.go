// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watchDeclared adds the watches that steps declare.
func (e *Engine[T]) watchDeclared(b *builder.Builder) error {
	for _, p := range e.plan.parts {
		watcher, ok := p.step.(Watcher[T])
		if !ok {
			continue
		}
		for _, w := range watcher.Watches() {
			gvk, err := e.options.Client.GroupVersionKindFor(w.Object)
			if err != nil {
				return fmt.Errorf("step %q watches %T: %w: register it with the scheme of the manager", p.step.Name(), w.Object, err)
			}
			e.watch(b, w, gvk.GroupKind())
		}
	}
	return nil
}

func (e *Engine[T]) watch(b *builder.Builder, w Watch, kind schema.GroupKind) {
	notes := builder.WithPredicates(noting{kind, w.Note})
	if w.Owned {
		b.Owns(w.Object, notes)
	}
	if w.Named == nil && w.Owned {
		return
	}
	b.Watches(w.Object, e.WrapHandler(handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if w.Named == nil {
			return nil
		}
		keys := w.Named(obj, e.resource.kind)
		requests := make([]reconcile.Request, len(keys))
		for i, key := range keys {
			requests[i].NamespacedName = key
		}
		return requests
	})), notes)
}

// noting is a predicate that lets every event pass, and notes what exists.
type noting struct {
	kind schema.GroupKind
	note func(kind schema.GroupKind, before, now client.Object) // may be nil
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
	return true
}
