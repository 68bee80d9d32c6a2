// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
)

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
//		return err
//	}
//
// Its rules:
//
//   - O is a pointer to a struct.
//   - A key without a namespace is in that of req.Object, if the kind has namespaces.
//   - Only a watch ends the wait: see [WatchNamed]. While the kind itself is missing, it is
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
