// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uncopied returns a reader that has a cache not copy what it returns: the objects are the cache's
// own and must not be changed. It is for whoever copies them before giving them away, as generated
// getters do, so that an object is copied once rather than twice. Readers without a cache read as
// before.
//
// A cache that copies fills in the apiVersion and kind of the copies. Without, they are empty, as
// they are with a client that reads from the API server.
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
