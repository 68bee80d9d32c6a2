// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/references"
)

// A Relation is made by [Owned], [Labeled], [NamedBy] and [Related]: changes of objects of one kind
// for which a handler of another kind is called. It is watched as long as the handler is
// registered, and a kind that does not exist yet is waited for.
//
// The handler is called once for a change, whatever time it had asked for before: also after a
// failure it does not wait for the rest of its backoff.
type Relation struct {
	watched client.Object
	// owned, label, names and namedBy are exclusive.
	owned   bool
	label   string
	names   func(obj client.Object) []client.ObjectKey
	namedBy func(obj client.Object) []client.ObjectKey
	// types are those that the functions expect: of the watched objects, and of those of the handler.
	watchedType, handlerType reflect.Type
}

// Owned relates objects with their controller owner: a change of an object of the kind of watched
// calls the handler for its owner, if that is of the kind of the handler. When an object changes
// hands, it is called for both owners.
func Owned(watched client.Object) Relation { return Relation{watched: watched, owned: true} }

// Labeled relates objects with the one that their label names: in the same namespace, or without
// one if the objects of the handler have none.
func Labeled(watched client.Object, label string) Relation {
	return Relation{watched: watched, label: label}
}

// Related relates objects by a function: a change of an object of the kind of watched calls the
// handler for the names that keys returns, of the object as it was and as it is. Keys depends on
// nothing but obj, and does not change it.
func Related[W client.Object](watched W, keys func(obj W) []client.ObjectKey) Relation {
	r := Relation{watched: watched, watchedType: reflect.TypeFor[W]()}
	if keys != nil {
		r.names = func(obj client.Object) []client.ObjectKey { return keys(obj.(W)) } //nolint:errcheck // the feed of the kind has no others
	}
	return r
}

// NamedBy relates objects with those that name them: keys returns which objects of the kind of
// watched an object of the handler depends on, and a change of one of these calls the handler for
// all that name it. A key without a namespace is in that of obj, if the watched kind has namespaces.
// What names what is kept in memory, from the events of both kinds.
func NamedBy[T client.Object](watched client.Object, keys func(obj T) []client.ObjectKey) Relation {
	r := Relation{watched: watched, handlerType: reflect.TypeFor[T]()}
	if keys != nil {
		r.namedBy = func(obj client.Object) []client.ObjectKey { return keys(obj.(T)) } //nolint:errcheck // checked when it is registered
	}
	return r
}

// checkRelated returns what is wrong with the relations of a handler.
func checkRelated[T client.Object](all []Relation, scheme *runtime.Scheme) []error {
	var mistakes []error
	for i, r := range all {
		if err := r.check(reflect.TypeFor[T](), scheme); err != nil {
			mistakes = append(mistakes, fmt.Errorf("relation %d: %w", i+1, err))
		}
	}
	return mistakes
}

func (r *Relation) check(own reflect.Type, scheme *runtime.Scheme) error {
	switch {
	case r.watched == nil || reflect.ValueOf(r.watched).IsNil():
		return errors.New("no watched object: use an empty one of the kind, such as &corev1.Secret{}")
	case !r.owned && r.label == "" && r.names == nil && r.namedBy == nil:
		return errors.New("it relates nothing: make it with Owned, Labeled, Related or NamedBy, whose label or function is not empty")
	case r.handlerType != nil && r.handlerType != own:
		return fmt.Errorf("the function of NamedBy is for %v, and the handler for %v", r.handlerType, own)
	}
	if _, err := keyOf(r.watched, scheme); err != nil {
		return fmt.Errorf("watched %T: %w: register it with the scheme of the manager", r.watched, err)
	}
	return nil
}

// A watch is what a registered handler listens to beside the events of its own kind.
type watch struct {
	listener *listener
	feed     *feed
}

// relate returns what listens to the watched kind of a relation. What names what is indexed by a
// filter of the entry, so that the index has an object before the handler is called for it.
func relate(k *kind, e *entry, r *Relation, f *feed) *listener {
	names := r.names
	switch {
	case r.owned:
		names = k.ownersOf
	case r.label != "":
		names = func(obj client.Object) []client.ObjectKey { return k.labeled(obj, r.label) }
	case r.namedBy != nil:
		index := &references.Index[client.Object]{Named: k.caught(e, r.namedBy)}
		e.filters = append(e.filters, index)
		names = func(obj client.Object) []client.ObjectKey { return keysOf(index.Naming(context.Background(), obj)) }
	}
	return &listener{events: relating{k, e, f, k.caught(e, names)}}
}

// caught returns a function of a relation whose panics are logged: it is called by the informer of
// the kind, on which other handlers depend.
func (k *kind) caught(e *entry, names func(obj client.Object) []client.ObjectKey) func(obj client.Object) []client.ObjectKey {
	return func(obj client.Object) (keys []client.ObjectKey) {
		defer func() {
			if value := recover(); value != nil {
				k.registry.log.Error(fmt.Errorf("panic: %v", value), "A relation has panicked, and calls its handler for nothing", "handler", e.name,
					"kind", k.key.String(), "object", client.ObjectKeyFromObject(obj).String(), "stack", string(debug.Stack()))
				keys = nil
			}
		}()
		return names(obj)
	}
}

// ownersOf returns the controller owner of an object, if it is of the kind. The version does not
// count: the same owner has several.
func (k *kind) ownersOf(obj client.Object) []client.ObjectKey {
	owner := metav1.GetControllerOf(obj)
	if owner == nil {
		return nil
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || gv.Group != k.key.gvk.Group || owner.Kind != k.key.gvk.Kind {
		return nil
	}
	return []client.ObjectKey{k.nearby(obj, owner.Name)}
}

func (k *kind) labeled(obj client.Object, label string) []client.ObjectKey {
	name := obj.GetLabels()[label]
	if name == "" {
		return nil
	}
	return []client.ObjectKey{k.nearby(obj, name)}
}

// nearby returns the key of an object of the kind, in the namespace of obj if the kind has
// namespaces.
func (k *kind) nearby(obj client.Object, name string) client.ObjectKey {
	key := client.ObjectKey{Name: name}
	if k.isNamespaced() {
		key.Namespace = obj.GetNamespace()
	}
	return key
}

func keysOf(requests []reconcile.Request) []client.ObjectKey {
	keys := make([]client.ObjectKey, len(requests))
	for i, r := range requests {
		keys[i] = r.NamespacedName
	}
	return keys
}

// relating calls a handler for what an event is related with. That an object is there when the
// watch begins is no event, because the handler is called for all its objects then anyway, unless
// its kind came later.
type relating struct {
	kind  *kind
	entry *entry
	feed  *feed // of the watched kind
	names func(obj client.Object) []client.ObjectKey
}

// Create implements [predicate.Predicate].
func (v relating) Create(ev event.CreateEvent) bool {
	if !ev.IsInInitialList || v.feed.isLate() {
		v.wake("created", ev.Object)
	}
	return true
}

// Update implements [predicate.Predicate].
func (v relating) Update(ev event.UpdateEvent) bool {
	if ev.ObjectOld == nil {
		v.wake("updated", ev.ObjectNew)
	} else if ev.ObjectOld.GetResourceVersion() != ev.ObjectNew.GetResourceVersion() {
		v.wake("updated", ev.ObjectOld, ev.ObjectNew)
	}
	return true
}

// Delete implements [predicate.Predicate].
func (v relating) Delete(ev event.DeleteEvent) bool {
	v.wake("deleted", ev.Object)
	return true
}

// Generic implements [predicate.Predicate].
func (v relating) Generic(event.GenericEvent) bool { return true }

func (v relating) wake(verb string, states ...client.Object) {
	seen := make(map[client.ObjectKey]bool, len(states))
	for _, obj := range states {
		for _, name := range v.names(obj) {
			if name.Name == "" || seen[name] {
				continue
			}
			seen[name] = true
			v.kind.causes.Foreign(name, obj, verb)
			v.kind.wake(v.entry, name, 0)
		}
	}
}

// wakingQueue is the queue of the watches of an engine: what is added to it calls one handler.
type wakingQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request] // nil: no handler of an engine uses the rest
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

// engineEvents passes the events of a watched kind to an engine.
type engineEvents struct {
	queue   *wakingQueue
	filters []predicate.Predicate // see all events
	wired   wired
}

// A wired is a watch that the steps of an engine declare.
type wired struct {
	object  client.Object
	filter  predicate.Predicate
	handler handler.EventHandler
}

// Create implements [predicate.Predicate].
func (v engineEvents) Create(ev event.CreateEvent) bool {
	for _, f := range v.filters {
		f.Create(ev)
	}
	if v.wired.filter.Create(ev) {
		v.wired.handler.Create(context.Background(), ev, v.queue)
	}
	return true
}

// Update implements [predicate.Predicate].
func (v engineEvents) Update(ev event.UpdateEvent) bool {
	for _, f := range v.filters {
		f.Update(ev)
	}
	if v.wired.filter.Update(ev) {
		v.wired.handler.Update(context.Background(), ev, v.queue)
	}
	return true
}

// Delete implements [predicate.Predicate].
func (v engineEvents) Delete(ev event.DeleteEvent) bool {
	for _, f := range v.filters {
		f.Delete(ev)
	}
	if v.wired.filter.Delete(ev) {
		v.wired.handler.Delete(context.Background(), ev, v.queue)
	}
	return true
}

// Generic implements [predicate.Predicate].
func (v engineEvents) Generic(event.GenericEvent) bool { return true }

var _ predicate.Predicate = relating{}
