// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package wiring is what watches are connected to, and by what: a controller of controller-runtime by
// package step, and a shared one by package handlers. What a watch means is in package step alone.
package wiring

import (
	"context"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/state"
)

// A Target is the controller whose reconciles watches request. Client and Type are enough to check a
// watch.
type Target struct {
	Client client.Client    // knows the kinds, and which have namespaces
	Type   reflect.Type     // of the reconciled objects
	Kind   schema.GroupKind // of the reconciled objects
	Log    logr.Logger      // for functions that panic
	// Namespaced reports whether the reconciled objects have namespaces.
	Namespaced func() bool
	// Own reports whether an object is a reconciled one. It is nil if the controller passes no others
	// to the index of a watch.
	Own func(obj client.Object) bool
	// Wrap has a handler record what has requested which reconcile.
	Wrap func(h handler.EventHandler) handler.EventHandler
	// RecordsChildren says that the controller itself records the changes of what its objects own.
	RecordsChildren bool
	// Readers returns who has read objects of a kind. It is nil if that is not recorded.
	Readers func(kind schema.GroupKind) *references.Readers
}

// A Watch is what a controller is connected to for one watch.
type Watch struct {
	// Object is of the watched kind.
	Object client.Object
	Kind   schema.GroupVersionKind
	// Index sees the events of the reconciled objects before they request reconciles. It lets all
	// pass. It is nil if the watch needs none.
	Index predicate.Predicate
	// Filter sees the events of the watched objects, and drops those that request nothing.
	Filter predicate.Predicate
	// Handler adds requests to the queue.
	Handler handler.EventHandler
	// Notes says that Filter notes what exists, so that a reconcile before that may have
	// missed it.
	Notes bool
	// OnlyOwned says that the watch is for nothing but what the reconciled objects own.
	OnlyOwned bool
	// Indexes are those that the cache of the controller is to have of the kind.
	Indexes []state.Index[client.Object]
}

// RegisterIndexes has a cache keep the indexes of a watch. Several watches may have the same one.
func (w Watch) RegisterIndexes(indexer client.FieldIndexer) error {
	for _, index := range w.Indexes {
		if err := index.Register(context.Background(), indexer, w.Object); err != nil {
			return err
		}
	}
	return nil
}

// A Wiring is what an engine is connected to.
type Wiring struct {
	// Filters see the events of the reconciled objects and of all watched ones, before any of them
	// requests a reconcile. They let all events pass.
	Filters []predicate.Predicate
	// Watches are those of the engine. Their indexes are among the filters.
	Watches []Watch
}
