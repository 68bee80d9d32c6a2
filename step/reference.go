// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/references"
	"github.com/ctrlkit/ctrlkit/permission"
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
	e.uses.addNamed(permission.Use{Object: watched, Verbs: permission.Reads(), By: "engine " + e.options.Name + ": watches what its objects name"})
	return e.watchNamed(b, watched, &references.Index[T]{
		Named: func(obj client.Object) []client.ObjectKey { return named(obj.(T)) }, //nolint:errcheck // the index passes only these
	}, options...)
}

func (e *Engine[T]) watchNamed(b *builder.Builder, watched client.Object, r *references.Index[T], options ...builder.WatchesOption) *builder.Builder {
	r.Namespaced = sync.OnceValue(func() bool { return namespaced(e.options.Client, watched) })
	return b.Watches(watched, e.naming(b, r), options...)
}

// naming returns the handler of a watch of objects that the reconciled ones name.
func (e *Engine[T]) naming(b *builder.Builder, r *references.Index[T]) handler.EventHandler {
	b.WithEventFilter(r)
	return e.WrapHandler(handler.EnqueueRequestsFromMapFunc(r.Naming))
}

// namespaced reports whether the kind of obj has namespaces, as most have.
func namespaced(c client.Client, obj client.Object) bool {
	is, err := c.IsObjectNamespaced(obj)
	return err != nil || is
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
	key = references.InNamespaceOf(req.Object, key, namespaced(req.Client, obj))
	err := req.Client.Get(ctx, key, obj)
	switch {
	case err == nil:
		return obj, nil
	case apierrors.IsNotFound(err):
		err = ctrlkit.Wait(nameOf(req.Client, obj, key))
		return none, err
	case apimeta.IsNoMatchError(err):
		err = ctrlkit.Poll(nameOf(req.Client, obj, key)+", whose kind the API server does not have", requeueNoKind)
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
