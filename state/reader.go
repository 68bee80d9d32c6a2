// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uncopied returns a reader that reads from a cache without copying: the objects belong to the
// cache and must not be changed. Generated getters use it because they copy what they return: an
// object is then copied once rather than twice. With a reader that has no cache, Uncopied has no
// effect.
//
// A cache that copies an object sets its apiVersion and kind. Objects that are not copied have
// neither, like those that a client reads from the API server.
func Uncopied(reader client.Reader) client.Reader { return uncopied{reader} }

type uncopied struct{ reader client.Reader }

// Get implements client.Reader.
func (u uncopied) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return u.reader.Get(ctx, key, obj, append([]client.GetOption{client.UnsafeDisableDeepCopy}, opts...)...)
}

// List implements client.Reader.
func (u uncopied) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return u.reader.List(ctx, list, append([]client.ListOption{client.UnsafeDisableDeepCopy}, opts...)...)
}
