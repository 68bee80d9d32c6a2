// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/state"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// WrapHandler returns h so that r records which event has requested which reconcile.
func (r *Recorder) WrapHandler(h handler.EventHandler) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, ev event.CreateEvent, q queue) {
			h.Create(ctx, ev, r.recording(q, ev.Object, "created"))
		},
		UpdateFunc: func(ctx context.Context, ev event.UpdateEvent, q queue) {
			h.Update(ctx, ev, r.recording(q, ev.ObjectNew, "updated"))
		},
		DeleteFunc: func(ctx context.Context, ev event.DeleteEvent, q queue) {
			h.Delete(ctx, ev, r.recording(q, ev.Object, "deleted"))
		},
		GenericFunc: func(ctx context.Context, ev event.GenericEvent, q queue) {
			h.Generic(ctx, ev, r.recording(q, ev.Object, "notified"))
		},
	}
}

// WatchReader returns reader with the method WrapHandler of r, for the watches of a generated
// manager.
func (r *Recorder) WatchReader(reader client.Reader) client.Reader { return watchReader{reader, r} }

type watchReader struct {
	client.Reader
	recorder *Recorder
}

// WrapHandler implements [state.HandlerWrapper].
func (w watchReader) WrapHandler(h handler.EventHandler) handler.EventHandler {
	return w.recorder.WrapHandler(h)
}

var _ state.HandlerWrapper = watchReader{}

// recording returns q so that what is added to it because of obj is recorded.
func (r *Recorder) recording(q queue, obj client.Object, verb string) queue {
	if r.Observer == nil || obj == nil {
		return q
	}
	cause := journal.Cause{Kind: journal.CauseForeignChange, Verb: verb, Object: r.name(obj)}
	record := func(request reconcile.Request) { r.record(request.NamespacedName, Seen{cause, ""}) }
	if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		return &recordingPriorityQueue{p, record}
	}
	return &recordingQueue{q, record}
}

type recordingQueue struct {
	queue
	record func(reconcile.Request)
}

func (q *recordingQueue) Add(r reconcile.Request) {
	q.record(r)
	q.queue.Add(r)
}

type recordingPriorityQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	record func(reconcile.Request)
}

func (q *recordingPriorityQueue) Add(r reconcile.Request) {
	q.record(r)
	q.PriorityQueue.Add(r)
}

func (q *recordingPriorityQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, r := range requests {
		q.record(r)
	}
	q.PriorityQueue.AddWithOpts(o, requests...)
}
