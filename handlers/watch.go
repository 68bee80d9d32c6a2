// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/engine/wiring"
	"github.com/ctrlkit/ctrlkit/step"
)

// A watch is what a registered handler listens to beside the events of its own kind.
type watch struct {
	listener *listener
	feed     *feed
}

// checkRelated returns what is wrong with the watches of a handler without an engine.
func checkRelated[T client.Object](r *Registry, related []step.Watch) error {
	var mistakes []error
	for i, w := range related {
		if _, err := w.Wire(wiring.Target{Client: r.base, Type: reflect.TypeFor[T]()}); err != nil {
			mistakes = append(mistakes, fmt.Errorf("related %d: %w", i+1, err))
		} else if w.Read {
			mistakes = append(mistakes, fmt.Errorf("related %d: what a handler without steps reads is not recorded: use NamedBy instead of Read", i+1))
		}
	}
	return errors.Join(mistakes...)
}

// relate returns the watches of a handler: those of its engine, or what it relates itself. What names
// what is indexed by a filter of the entry, so that the index has an object before the handler is
// called for it.
func (k *kind) relate(e *entry) ([]wiring.Watch, error) {
	if e.engine != nil {
		return e.wired, nil
	}
	to := wiring.Target{
		Client: k.registry.base, Type: reflect.TypeOf(e.object), Kind: k.key.gvk.GroupKind(),
		Log:        k.registry.log.WithValues("handler", e.name, "kind", k.key.String()),
		Namespaced: k.scope.Namespaced, Wrap: k.causes.WrapHandler,
	}
	var all []wiring.Watch
	for _, related := range e.related {
		w, err := related.Wire(to)
		if err != nil {
			return nil, err
		}
		if w.Index != nil {
			e.filters = append(e.filters, w.Index)
		}
		all = append(all, w)
	}
	return all, nil
}

// wakingQueue is the queue of the watches of a handler: what is added to it calls one handler.
type wakingQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request] // nil: no watch uses the rest
	kind                                                    *kind
	entry                                                   *entry
}

// Add implements [workqueue.TypedInterface].
func (q *wakingQueue) Add(r reconcile.Request) { q.kind.wake(q.entry, r.NamespacedName, 0) }

// AddAfter implements [workqueue.TypedDelayingInterface].
func (q *wakingQueue) AddAfter(r reconcile.Request, after time.Duration) {
	q.kind.wake(q.entry, r.NamespacedName, after)
}

// AddRateLimited implements [workqueue.TypedRateLimitingInterface].
func (q *wakingQueue) AddRateLimited(r reconcile.Request) { q.Add(r) }

// watchEvents passes the events of a watched kind to a handler. That an object is there when the
// watch begins calls no handler, because it is called for all its objects then anyway. It does if the
// kind came later, or if the watch notes what exists, which a call before that has not seen.
type watchEvents struct {
	queue   *wakingQueue
	feed    *feed                 // of the watched kind
	filters []predicate.Predicate // of an engine, which see all events
	wired   wiring.Watch
}

// Create implements [predicate.Predicate].
func (v watchEvents) Create(ev event.CreateEvent) bool {
	for _, f := range v.filters {
		f.Create(ev)
	}
	if v.wired.Filter.Create(ev) && (!ev.IsInInitialList || v.wired.Notes || v.feed.isLate()) {
		v.wired.Handler.Create(context.Background(), ev, v.queue)
	}
	return true
}

// Update implements [predicate.Predicate].
func (v watchEvents) Update(ev event.UpdateEvent) bool {
	for _, f := range v.filters {
		f.Update(ev)
	}
	if v.wired.Filter.Update(ev) {
		v.wired.Handler.Update(context.Background(), ev, v.queue)
	}
	return true
}

// Delete implements [predicate.Predicate].
func (v watchEvents) Delete(ev event.DeleteEvent) bool {
	for _, f := range v.filters {
		f.Delete(ev)
	}
	if v.wired.Filter.Delete(ev) {
		v.wired.Handler.Delete(context.Background(), ev, v.queue)
	}
	return true
}

// Generic implements [predicate.Predicate].
func (v watchEvents) Generic(event.GenericEvent) bool { return true }

var _ predicate.Predicate = watchEvents{}
