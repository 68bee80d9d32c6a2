// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/journal"
)

// EventFilter returns a predicate that lets every event pass. It records what triggers reconciles,
// and the last states of objects that are gone. [Engine.Complete] installs it; a program that
// builds its controller otherwise passes it to builder.WithEventFilter.
func (e *Engine[T]) EventFilter() predicate.Predicate { return eventFilter[T]{engine: e} }

// WrapHandler returns h so that the engine records which event has requested which reconcile. Use
// it for watches of objects that the reconciled one does not own:
//
//	h := handler.EnqueueRequestsFromMapFunc(databasesOf)
//	b.Watches(&corev1.Secret{}, engine.WrapHandler(h))
func (e *Engine[T]) WrapHandler(h handler.EventHandler) handler.EventHandler {
	return e.causes.WrapHandler(h)
}

// WatchReader returns r for the watches of a generated manager, so that they record causes:
//
//	b := ctrl.NewControllerManagedBy(mgr)
//	manager.WatchDatabaseManager(b, engine.WatchReader(mgr.GetCache()))
func (e *Engine[T]) WatchReader(r client.Reader) client.Reader { return e.causes.WatchReader(r) }

// An eventFilter sees the events of all watches of the controller, before they trigger a reconcile.
type eventFilter[T client.Object] struct {
	engine *Engine[T]
	alone  bool // no other watch reports the reconciled kind: see echo
}

// filtered reports whether b has an event filter that may hide events from those that are added to
// it. The builder does not say which ones it has, and its field is only read here: if it is not
// found, there may be one.
func filtered[T client.Object](b *builder.Builder) bool {
	predicates := reflect.ValueOf(b).Elem().FieldByName("globalPredicates")
	if predicates.Kind() != reflect.Slice {
		return true
	}
	for i := range predicates.Len() {
		p := predicates.Index(i)
		if p.Kind() != reflect.Interface || p.IsNil() || p.Elem().Type() != reflect.TypeFor[*references.Index]() { // they let everything pass
			return true
		}
	}
	return false
}

// count counts the change of an object. An event that repeats what the cache has, as those of a
// resync and of a new list do, is none.
func (f eventFilter[T]) count(before, obj client.Object) {
	switch {
	case obj == nil || !f.engine.options.SkipUnchanged:
	case before != nil && before.GetUID() == obj.GetUID() && before.GetResourceVersion() == obj.GetResourceVersion() && obj.GetResourceVersion() != "":
	default:
		f.engine.feed.Changed(obj)
	}
}

// Create implements [predicate.Predicate].
func (f eventFilter[T]) Create(ev event.CreateEvent) bool {
	f.count(nil, ev.Object)
	if ev.IsInInitialList {
		f.record(ev.Object, journal.CauseStart, "")
		return true
	}
	f.record(ev.Object, "", "created")
	return true
}

// Update implements [predicate.Predicate].
func (f eventFilter[T]) Update(ev event.UpdateEvent) bool {
	f.count(ev.ObjectOld, ev.ObjectNew)
	if ev.ObjectOld != nil && ev.ObjectNew != nil && ev.ObjectOld.GetUID() != ev.ObjectNew.GetUID() {
		// The watch was interrupted while one object was deleted and another one of its name
		// created.
		f.gone(ev.ObjectOld, false)
	}
	if ev.ObjectOld != nil && ev.ObjectNew != nil && f.echoes(ev.ObjectOld, ev.ObjectNew) {
		return false
	}
	f.record(ev.ObjectNew, "", "updated")
	return true
}

// Delete implements [predicate.Predicate].
func (f eventFilter[T]) Delete(ev event.DeleteEvent) bool {
	f.count(nil, ev.Object)
	f.gone(ev.Object, !ev.DeleteStateUnknown)
	f.record(ev.Object, "", "deleted")
	return true
}

// Generic implements [predicate.Predicate].
func (f eventFilter[T]) Generic(ev event.GenericEvent) bool {
	f.count(nil, ev.Object)
	f.record(ev.Object, "", "notified")
	return true
}

// record records an event: as a cause of the object itself, or of those that own it.
func (f eventFilter[T]) record(obj client.Object, kind journal.CauseKind, verb string) {
	if obj == nil {
		return
	}
	if _, own := f.engine.resource.is(obj); own {
		f.engine.forgetMoved(client.ObjectKeyFromObject(obj))
		if f.engine.drain != nil && f.engine.drains(obj) {
			f.engine.drain.request(client.ObjectKeyFromObject(obj))
		}
		f.engine.causes.Own(obj, kind, verb)
		return
	}
	f.engine.causes.Child(obj, kind, verb)
}

// gone is called for each object that is gone, with its last state. Final says that it is the state
// in which the object was deleted.
func (f eventFilter[T]) gone(obj client.Object, final bool) {
	e := f.engine
	typed, ok := e.resource.is(obj)
	if !ok {
		return
	}
	if e.options.Shard.Left(e.resource.kind, obj) { // also if another client has changed its label
		e.memories.forget(client.ObjectKeyFromObject(obj))
		return
	}
	if e.finalizers.own == "" || e.plan.leavesAlone(typed) {
		return
	}
	if e.memories.gone(typed, final, e.finalizers.protects(typed)) {
		logger := log.Log.WithName(e.options.Name).WithValues("object", client.ObjectKeyFromObject(obj))
		e.finalizers.reportRemoved(logger, e.options.Recorder, obj, "the object is gone, and nothing is cleaned up")
	}
}
