// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/state"
)

// A wrapped handler adds to the queue what it added before, and each request has its cause.
func TestWrappedHandlers(t *testing.T) {
	request := reconcile.Request{NamespacedName: key}
	mapped := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request} })
	adding := handler.Funcs{GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { q.Add(request) }}
	cm := ownedBy()
	tests := []struct {
		name    string
		handler handler.EventHandler
		send    func(ctx context.Context, h handler.EventHandler, q queue)
		want    string
	}{
		{"created", mapped, func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Create(ctx, event.CreateEvent{Object: cm}, q)
		}, "ConfigMap default/child created"},
		{"created, in the first list", mapped, func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Create(ctx, event.CreateEvent{Object: cm, IsInInitialList: true}, q)
		}, "ConfigMap default/child created"},
		{"updated", mapped, func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: &corev1.ConfigMap{}, ObjectNew: cm}, q)
		}, "ConfigMap default/child updated"},
		{"deleted", mapped, func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Delete(ctx, event.DeleteEvent{Object: cm}, q)
		}, "ConfigMap default/child deleted"},
		{"notified", mapped, func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Generic(ctx, event.GenericEvent{Object: cm}, q)
		}, "ConfigMap default/child notified"},
		{"added without a priority", adding, func(ctx context.Context, h handler.EventHandler, q queue) {
			h.Generic(ctx, event.GenericEvent{Object: cm}, q)
		}, "ConfigMap default/child notified"},
	}
	queues := map[string]func() queue{
		"with priorities": func() queue { return priorityqueue.New[reconcile.Request]("test") },
		"without priorities": func() queue {
			return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		},
	}
	for name, newQueue := range queues {
		for _, test := range tests {
			t.Run(name+"/"+test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, entries := newRecorder(t)
					q := newQueue()
					defer q.ShutDown()
					test.send(t.Context(), r.WrapHandler(test.handler), q)
					synctest.Wait()
					if got, _ := q.Get(); got != request || q.Len() != 0 {
						t.Fatalf("%v was added, and %d more", got, q.Len())
					}
					if diff := cmp.Diff([]string{test.want}, take(r, key)); diff != "" {
						t.Errorf("causes (-want +got):\n%s", diff)
					}
					if len(*entries) != 1 {
						t.Errorf("reported %v", *entries)
					}
				})
			})
		}
	}
}

// The queue of a handler keeps its priorities.
func TestAWrappedHandlerKeepsPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newRecorder(t)
		q := priorityqueue.New[reconcile.Request]("test")
		defer q.ShutDown()
		priority := -7
		r.WrapHandler(handler.Funcs{GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) {
			q.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts( //nolint:errcheck // the wrapped queue is one
				priorityqueue.AddOpts{Priority: &priority}, reconcile.Request{NamespacedName: key})
		}}).Generic(t.Context(), event.GenericEvent{Object: ownedBy()}, q)
		if _, got, _ := q.GetWithPriority(); got != priority {
			t.Errorf("priority: got %d, want %d", got, priority)
		}
		if diff := cmp.Diff([]string{"ConfigMap default/child notified"}, take(r, key)); diff != "" {
			t.Errorf("causes (-want +got):\n%s", diff)
		}
	})
}

// A queue is not wrapped if there is nothing to record.
func TestQueuesThatAreNotWrapped(t *testing.T) {
	r, _ := newRecorder(t)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	if got := r.recording(q, nil, "updated"); got != queue(q) {
		t.Error("the queue of an event without an object is wrapped")
	}
	r.Observer = nil
	if got := r.recording(q, ownedBy(), "updated"); got != queue(q) {
		t.Error("a queue without an observer is wrapped")
	}
}

// The reader of a generated manager wraps its handlers.
func TestAWatchReader(t *testing.T) {
	r, _ := newRecorder(t)
	reader := r.WatchReader(r.Client)
	called := false
	h := reader.(state.HandlerWrapper).WrapHandler(handler.Funcs{GenericFunc: func(_ context.Context, _ event.GenericEvent, q queue) { //nolint:errcheck // it is one
		called = true
		q.Add(reconcile.Request{NamespacedName: key})
	}})
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	h.Generic(t.Context(), event.GenericEvent{Object: ownedBy()}, q)
	if got := take(r, key); !called || len(got) != 1 {
		t.Errorf("called %v, and recorded %v", called, got)
	}
}
