// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A condition of which another client has changed only the time is no conflict, and its time stays.
func TestATransitionTimeOfAnotherClientStays(t *testing.T) {
	w := newWorld(t, newThing())
	text := "one"
	do := func(*request) {}
	w.engine(keeping("A", does(func(_ context.Context, req *request) {
		req.Conditions.MarkHealthy("Found", "Found", text)
		do(req)
	}), "Found"))
	w.must()
	later := metav1.Now().Add(time.Hour).Truncate(time.Second)
	text = "two"
	do = func(*request) {
		w.editStatus(func(obj *Thing) {
			meta.FindStatusCondition(obj.Status.Conditions, "Found").LastTransitionTime = metav1.NewTime(later)
		})
	}
	w.must()
	if c := meta.FindStatusCondition(w.thing().Status.Conditions, "Found"); c.Message != "two" || !c.LastTransitionTime.Time.Equal(later) {
		t.Errorf("got %+v, want the time of the other client, %v", c, later)
	}
}

// With an edit of another client every 100 ms and steps that take longer, everything is done within
// seconds.
func TestABusyCoWriterStarvesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		cleanups := 0
		liveEngine(w, cleaning("A", func(ctx context.Context, req *request) error {
			pass(300 * time.Millisecond)
			req.Object.Status.Size = 7
			return client.IgnoreAlreadyExists(req.Client.Create(ctx, configMap("child", nil)))
		}, does(func(context.Context, *request) {
			pass(2 * time.Second)
			cleanups++
		})))
		ctx, stop := context.WithCancel(t.Context())
		var coWriter sync.WaitGroup
		defer coWriter.Wait()
		defer stop()
		coWriter.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				patch := mergePatch(`{"metadata":{"annotations":{"seen":"%d"}}}`, i)
				_ = w.server.Patch(ctx, newThing(), patch)
				pass(100 * time.Millisecond)
			}
		})
		until := func(what string, done func() bool) {
			t.Helper()
			began := time.Now()
			for !done() {
				result, err := w.reconcile()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				pass(max(result.RequeueAfter, 10*time.Millisecond))
				if time.Since(began) > 10*time.Second {
					t.Fatalf("%s: not after %v: %+v", what, time.Since(began), w.thing())
				}
			}
		}
		until("status, child and conditions", func() bool {
			child := configMap("child", nil)
			return w.thing().Status.Size == 7 && w.conditionOf(condition.Ready) == "True Ready" && w.server.Get(ctx, client.ObjectKeyFromObject(child), child) == nil
		})
		w.remove(newThing())
		until("cleanup", func() bool { return w.thing() == nil })
		same(t, "cleanups", 1, cleanups)
	})
}
