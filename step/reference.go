// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
)

// WatchNamed adds a watch to b for objects that the reconciled ones name: a change of such an
// object triggers a reconcile of those that name it.
//
//	b := ctrl.NewControllerManagedBy(mgr).For(&v1.Database{})
//	passwords := func(db *v1.Database) []client.ObjectKey {
//		return []client.ObjectKey{{Name: db.Spec.PasswordSecret}}
//	}
//	return engine.Complete(engine.WatchNamed(b, &corev1.Secret{}, passwords))
//
// What to know of it:
//
//   - Named returns the keys of the objects that obj names. It depends on nothing but obj, and does
//     not change it. A key without a name is ignored; one without a namespace is in that of obj, if
//     the watched kind has namespaces.
//   - Which object names which is kept in memory, from the events of the controller: nothing is
//     listed, and no index of the cache is needed.
//   - A filter that was given to b before, with WithEventFilter, hides the events that it drops.
//   - The journal has the causes, as with [Engine.WrapHandler].
func (e *Engine[T]) WatchNamed(b *builder.Builder, watched client.Object, named func(obj T) []client.ObjectKey, options ...builder.WatchesOption) *builder.Builder {
	r := &references[T]{named: named, namespaced: sync.OnceValue(func() bool { return namespaced(e.options.Client, watched) })}
	return b.Watches(watched, e.naming(b, r), options...)
}

// naming returns the handler of a watch of objects that the reconciled ones name.
func (e *Engine[T]) naming(b *builder.Builder, r *references[T]) handler.EventHandler {
	b.WithEventFilter(r)
	return e.WrapHandler(handler.EnqueueRequestsFromMapFunc(r.naming))
}

// namespaced reports whether the kind of obj has namespaces, as most have.
func namespaced(c client.Client, obj client.Object) bool {
	is, err := c.IsObjectNamespaced(obj)
	return err != nil || is
}

// references are the objects of an engine by the keys that they name. It is a predicate that lets
// everything pass, because predicates see events before the reconcile does: that reconcile sees
// what changes in between.
type references[T client.Object] struct {
	named      func(obj T) []client.ObjectKey
	namespaced func() bool // nil if it can't be known, because the kind may come later

	mu   sync.Mutex // for all below
	by   map[client.ObjectKey]map[client.ObjectKey]bool
	from map[client.ObjectKey][]client.ObjectKey // what each object names
}

func (r *references[T]) Create(ev event.CreateEvent) bool   { return r.note(ev.Object, false) }
func (r *references[T]) Update(ev event.UpdateEvent) bool   { return r.note(ev.ObjectNew, false) }
func (r *references[T]) Delete(ev event.DeleteEvent) bool   { return r.note(ev.Object, true) }
func (r *references[T]) Generic(ev event.GenericEvent) bool { return r.note(ev.Object, false) }

func (r *references[T]) note(obj client.Object, gone bool) bool {
	typed, ok := obj.(T)
	if !ok {
		return true
	}
	var keys []client.ObjectKey
	if !gone {
		keys = r.keys(typed)
	}
	own := client.ObjectKeyFromObject(obj)
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.from[own]
	if slices.Equal(old, keys) {
		return true
	}
	for _, key := range old {
		if delete(r.by[key], own); len(r.by[key]) == 0 {
			delete(r.by, key)
		}
	}
	if len(keys) == 0 {
		delete(r.from, own)
		return true
	}
	if r.from == nil {
		r.from, r.by = make(map[client.ObjectKey][]client.ObjectKey), make(map[client.ObjectKey]map[client.ObjectKey]bool)
	}
	r.from[own] = keys
	for _, key := range keys {
		if r.by[key] == nil {
			r.by[key] = make(map[client.ObjectKey]bool)
		}
		r.by[key][own] = true
	}
	return true
}

// keys returns what an object names, complete. If it is not known whether the kind has namespaces,
// each key is there both with and without one.
func (r *references[T]) keys(obj T) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, key := range r.named(obj) {
		switch {
		case key.Name == "":
		case r.namespaced == nil:
			keys = append(keys, inNamespaceOf(obj, key, true), inNamespaceOf(obj, key, false))
		default:
			keys = append(keys, inNamespaceOf(obj, key, r.namespaced()))
		}
	}
	return keys
}

func inNamespaceOf(obj client.Object, key client.ObjectKey, namespaced bool) client.ObjectKey {
	switch {
	case !namespaced:
		key.Namespace = ""
	case key.Namespace == "":
		key.Namespace = obj.GetNamespace()
	}
	return key
}

// naming returns requests for the objects that name one, in the order of their names.
func (r *references[T]) naming(_ context.Context, obj client.Object) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var requests []reconcile.Request
	for key := range r.by[client.ObjectKeyFromObject(obj)] {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	slices.SortFunc(requests, func(a, b reconcile.Request) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return requests
}

// GetOrWait reads an object through Request.Client. If there is none, the error is a wait for it,
// such as "Secret default/db", which a step returns like any other:
//
//	key := client.ObjectKey{Name: req.Object.Spec.PasswordSecret}
//	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, key)
//	if err != nil {
//		return ctrlkit.RequeueIfError(err)
//	}
//
// What to know of it:
//
//   - O is a pointer to a struct.
//   - A key without a namespace is in that of req.Object, if the kind has namespaces.
//   - Only a watch ends the wait: see [Engine.WatchNamed]. While the kind itself is missing, it is
//     also tried again after a minute.
//   - ctrlkit.Waits(err) distinguishes a wait from other errors.
func GetOrWait[O, T client.Object](ctx context.Context, req *Request[T], key client.ObjectKey) (O, error) {
	var none O
	obj := reflect.New(reflect.TypeFor[O]().Elem()).Interface().(O) //nolint:errcheck // it is the type
	key = inNamespaceOf(req.Object, key, namespaced(req.Client, obj))
	err := req.Client.Get(ctx, key, obj)
	switch {
	case err == nil:
		return obj, nil
	case apierrors.IsNotFound(err):
		_, err = ctrlkit.WaitFor(nameOf(req.Client, obj, key))
		return none, err
	case apimeta.IsNoMatchError(err):
		_, err = ctrlkit.PollFor(nameOf(req.Client, obj, key)+", whose kind the API server does not have", requeueNoKind)
		return none, err
	default:
		return none, fmt.Errorf("reading %s: %w", nameOf(req.Client, obj, key), err)
	}
}

// requeueNoKind is when to try again to read an object of a kind that is missing. The watch of a
// kind that comes later reports no object that is not there.
const requeueNoKind = time.Minute

// nameOf returns the kind and the name of an object, for people: "Secret default/db".
func nameOf(c client.Client, obj client.Object, key client.ObjectKey) string {
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := c.GroupVersionKindFor(obj); err == nil {
		kind = gvk.Kind
	}
	if key.Namespace == "" {
		return kind + " " + key.Name
	}
	return kind + " " + key.String()
}
