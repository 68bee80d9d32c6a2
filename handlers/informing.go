// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// informing passes the events of an informer to a predicate.
type informing struct{ events predicate.Predicate }

// OnAdd implements [toolscache.ResourceEventHandler].
func (i informing) OnAdd(obj any, initial bool) {
	if o, ok := obj.(client.Object); ok {
		i.events.Create(event.CreateEvent{Object: o, IsInInitialList: initial})
	}
}

// OnUpdate implements [toolscache.ResourceEventHandler].
func (i informing) OnUpdate(before, now any) {
	o, _ := before.(client.Object)
	if n, ok := now.(client.Object); ok {
		i.events.Update(event.UpdateEvent{ObjectOld: o, ObjectNew: n})
	}
}

// OnDelete implements [toolscache.ResourceEventHandler].
func (i informing) OnDelete(obj any) {
	last, unknown := obj.(toolscache.DeletedFinalStateUnknown)
	if unknown {
		obj = last.Obj
	}
	if o, ok := obj.(client.Object); ok {
		i.events.Delete(event.DeleteEvent{Object: o, DeleteStateUnknown: unknown})
	}
}
