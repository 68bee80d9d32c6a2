// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/state"
)

// Complete makes a controller of the engine: with its rate limiter, and with an ear for the events
// of its watches, from which it learns the causes of reconciles, and the last states of objects
// that went without their clean-up. It replaces options that b was given: use Options.Controller.
//
// A second engine of the same manager for a kind that has conditions is refused: both would compute
// Ready.
//
//	err := engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&v1.Database{}).Owns(&corev1.Secret{}))
//
// Watches with a handler of your own tell their causes if the handler went through [Engine.WrapHandler].
func (e *Engine[T]) Complete(b *builder.Builder) error {
	options := e.options.Controller
	if options.RateLimiter == nil {
		options.RateLimiter = e.limiter
	}
	if err := e.claimSummary(); err != nil {
		return err
	}
	return b.Named(e.options.Name).WithOptions(options).WithEventFilter(e.EventFilter()).Complete(e)
}

// EventFilter returns a predicate that lets every event pass and tells the engine of it.
// [Engine.Complete] installs it; who builds the controller otherwise gives it to
// builder.WithEventFilter.
func (e *Engine[T]) EventFilter() predicate.Predicate { return listener[T]{e} }

// Limiter returns the rate limiter for the queue of the controller, for who does not use
// [Engine.Complete]. Without it, failures are tried again with the backoff of controller-runtime,
// whatever their class.
func (e *Engine[T]) Limiter() workqueue.TypedRateLimiter[reconcile.Request] { return e.limiter }

type listener[T client.Object] struct{ engine *Engine[T] }

func (l listener[T]) Create(ev event.CreateEvent) bool {
	if ev.IsInInitialList {
		l.engine.heard(ev.Object, journal.CauseStart, "")
		return true
	}
	l.engine.heard(ev.Object, "", "created")
	return true
}

func (l listener[T]) Update(ev event.UpdateEvent) bool {
	if ev.ObjectOld != nil && ev.ObjectNew != nil && ev.ObjectOld.GetUID() != ev.ObjectNew.GetUID() {
		// The watch was interrupted while one object went and another one of its name came.
		l.engine.deleted(ev.ObjectOld, false)
	}
	l.engine.heard(ev.ObjectNew, "", "updated")
	return true
}

func (l listener[T]) Delete(ev event.DeleteEvent) bool {
	l.engine.deleted(ev.Object, !ev.DeleteStateUnknown)
	l.engine.heard(ev.Object, "", "deleted")
	return true
}

func (l listener[T]) Generic(ev event.GenericEvent) bool {
	l.engine.heard(ev.Object, "", "told")
	return true
}

// seen is a cause, and the version of the object that it is about.
type seen struct {
	cause   journal.Cause
	version string
}

// causes are what has asked for reconciles since the one before. They are kept beside the queue,
// which only knows names.
type causes struct {
	kind schema.GroupKind

	mu      sync.Mutex // for pending
	pending map[types.NamespacedName][]seen
}

func newCauses(kind schema.GroupKind) *causes {
	return &causes{kind: kind, pending: make(map[types.NamespacedName][]seen)}
}

// mostPending is how many causes of one reconcile are kept apart: more are counted.
const mostPending = 32

func (c *causes) add(key types.NamespacedName, s seen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.pending[key]
	if i := slices.IndexFunc(all, func(o seen) bool {
		return o.cause.Object == s.cause.Object && o.cause.Verb == s.cause.Verb && o.cause.Kind == s.cause.Kind
	}); i >= 0 {
		all[i].cause.Times++
		all[i].version = s.version
		return
	}
	s.cause.Times = 1
	if len(all) >= mostPending {
		all[len(all)-1].cause.Times++
		return
	}
	c.pending[key] = append(all, s)
}

// take returns the causes of the reconcile that begins.
func (c *causes) take(key types.NamespacedName) []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.pending[key]
	delete(c.pending, key)
	return all
}

// heard notes an event: as a cause of the object itself, or of those that own it.
func (e *Engine[T]) heard(obj client.Object, kind journal.CauseKind, verb string) {
	if e.observer == nil || obj == nil {
		return
	}
	if _, own := obj.(T); own {
		e.because(client.ObjectKeyFromObject(obj), seen{journal.Cause{Kind: orKind(kind, journal.CauseOwnChange), Verb: verb}, obj.GetResourceVersion()})
		return
	}
	for _, owner := range obj.GetOwnerReferences() {
		if owner.Kind == e.kind.Kind && groupOf(owner.APIVersion) == e.kind.Group {
			key := types.NamespacedName{Name: owner.Name}
			if e.namespaced() {
				key.Namespace = obj.GetNamespace()
			}
			e.because(key, seen{journal.Cause{Kind: orKind(kind, journal.CauseChildChange), Verb: verb, Object: e.name(obj)}, ""})
		}
	}
}

func orKind(a, b journal.CauseKind) journal.CauseKind {
	if a == "" {
		return b
	}
	return a
}

func (e *Engine[T]) name(obj client.Object) journal.Object {
	gvk, err := e.options.Client.GroupVersionKindFor(obj)
	if err != nil {
		gvk = obj.GetObjectKind().GroupVersionKind()
	}
	return journal.ObjectOf(gvk.GroupKind(), client.ObjectKeyFromObject(obj))
}

func (e *Engine[T]) because(key types.NamespacedName, s seen) {
	e.causes.add(key, s)
	if s.cause.Kind == journal.CauseStart {
		return // every object is told of once when the operator starts
	}
	s.cause.Times = 1
	e.observer.Observe(context.Background(), journal.Entry{
		Time: time.Now(), Controller: e.options.Name, Object: journal.ObjectOf(e.kind, key), Event: journal.Triggered{Cause: s.cause},
	})
}

// WrapHandler returns h so that the engine learns which event has asked for which reconcile. Use it for
// watches of objects that the reconciled one does not own:
//
//	b.Watches(&corev1.Secret{}, engine.WrapHandler(handler.EnqueueRequestsFromMapFunc(databasesOf)))
func (e *Engine[T]) WrapHandler(h handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, ev event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			h.Create(ctx, ev, e.telling(q, ev.Object, "created"))
		},
		UpdateFunc: func(ctx context.Context, ev event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			h.Update(ctx, ev, e.telling(q, ev.ObjectNew, "updated"))
		},
		DeleteFunc: func(ctx context.Context, ev event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			h.Delete(ctx, ev, e.telling(q, ev.Object, "deleted"))
		},
		GenericFunc: func(ctx context.Context, ev event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			h.Generic(ctx, ev, e.telling(q, ev.Object, "told"))
		},
	}
}

// WatchReader returns r for the watches of a generated manager, so that they tell their causes:
//
//	manager.WatchDatabaseManager(ctrl.NewControllerManagedBy(mgr), engine.WatchReader(mgr.GetCache()))
func (e *Engine[T]) WatchReader(r client.Reader) client.Reader { return tellingReader[T]{r, e} }

type tellingReader[T client.Object] struct {
	client.Reader
	engine *Engine[T]
}

// WrapHandler makes it a state.HandlerWrapper.
func (t tellingReader[T]) WrapHandler(h handler.EventHandler) handler.EventHandler {
	return t.engine.WrapHandler(h)
}

var _ state.HandlerWrapper = tellingReader[client.Object]{}

// telling returns q so that the engine is told of what is added to it because of obj.
func (e *Engine[T]) telling(
	q workqueue.TypedRateLimitingInterface[reconcile.Request], obj client.Object, verb string,
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	if e.observer == nil || obj == nil {
		return q
	}
	object := e.name(obj)
	tell := func(r reconcile.Request) {
		e.because(r.NamespacedName, seen{journal.Cause{Kind: journal.CauseForeignChange, Verb: verb, Object: object}, ""})
	}
	if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		return &tellingPriorityQueue{p, tell}
	}
	return &tellingQueue{q, tell}
}

type tellingQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	tell func(reconcile.Request)
}

func (q *tellingQueue) Add(r reconcile.Request) {
	q.tell(r)
	q.TypedRateLimitingInterface.Add(r)
}

type tellingPriorityQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	tell func(reconcile.Request)
}

func (q *tellingPriorityQueue) Add(r reconcile.Request) {
	q.tell(r)
	q.PriorityQueue.Add(r)
}

func (q *tellingPriorityQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, r := range requests {
		q.tell(r)
	}
	q.PriorityQueue.AddWithOpts(o, requests...)
}
