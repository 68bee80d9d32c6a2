// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/references"
)

// reading returns what handles the events of a kind for the objects whose steps have read it.
func (e *Engine[T]) reading(w Watch, kind schema.GroupKind) handler.EventHandler {
	if e.readers == nil {
		e.readers = make(map[schema.GroupKind]*references.Readers)
	}
	if e.readers[kind] == nil {
		e.readers[kind] = &references.Readers{}
	}
	readers := e.readers[kind]
	return e.WrapHandler(handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		requests := readers.Naming(ctx, obj)
		owner := metav1.GetControllerOf(obj)
		if !w.Owned || owner == nil || owner.Kind != e.resource.kind.Kind {
			return requests
		}
		return slices.DeleteFunc(requests, func(r reconcile.Request) bool { // it is reconciled as the owner
			return r.Name == owner.Name && (r.Namespace == "" || r.Namespace == obj.GetNamespace())
		})
	}))
}

// forgetReads forgets what was read for an object that is gone.
func (e *Engine[T]) forgetReads(key client.ObjectKey) {
	for _, readers := range e.readers {
		readers.Settle(key, nil)
	}
}

// reads are what the steps of a reconcile read by name of the kinds with Watch.Read.
type reads struct {
	readers map[schema.GroupKind]*references.Readers
	by      client.ObjectKey // the reconciled object

	mu  sync.Mutex // steps may run at the same time
	all map[schema.GroupKind][]client.ObjectKey
}

// note notes that an object is about to be read, so that no later change of it is missed.
func (r *reads) note(kind schema.GroupKind, key client.ObjectKey) {
	readers := r.readers[kind]
	if readers == nil {
		return
	}
	readers.Read(r.by, key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[schema.GroupKind][]client.ObjectKey)
	}
	if !slices.Contains(r.all[kind], key) {
		r.all[kind] = append(r.all[kind], key)
	}
}

// settle forgets what earlier reconciles have read of the kinds of which this one has read something.
// One that was ended early may not have come to it.
func (r *reads) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, keys := range r.all {
		r.readers[kind].Settle(r.by, keys)
	}
}
