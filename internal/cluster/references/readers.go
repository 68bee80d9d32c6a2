// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Readers have the objects of a controller by the keys that were read for them: of one kind, whether
// there was such an object or not. The zero value has none; it is safe for concurrent use.
type Readers struct{ table table }

// Read notes that an object of a key is about to be read for another one: a change that comes from now
// on concerns that.
func (r *Readers) Read(by, key client.ObjectKey) { r.table.add(by, key) }

// Settle replaces what was read for an object by what its last reconcile has read.
func (r *Readers) Settle(by client.ObjectKey, keys []client.ObjectKey) { r.table.set(by, keys) }

// Naming returns requests for the objects for which one was read, in the order of their names.
func (r *Readers) Naming(_ context.Context, obj client.Object) []reconcile.Request {
	return r.table.of([]client.ObjectKey{client.ObjectKeyFromObject(obj)})
}
