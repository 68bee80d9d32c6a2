// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
)

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
