// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// Nothing is made outside for an object that the cache shows and the API server does not have any
// more.
func TestExternalOfAnObjectThatIsGone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stale bool
		want  int
	}{
		{"the cache is stale", true, 0},
		{"it is up to date", false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, newThing(finalizer))
			if tt.stale {
				w.cache[thingRequest.NamespacedName] = w.thing()
				w.edit(func(obj *Thing) { obj.Finalizers = nil })
				w.remove(newThing())
			}
			buckets := 0
			liveEngine(w, step.External("Bucket", func(context.Context, *request) (ctrl.Result, error) {
				buckets++
				return ctrlkit.ContinueAndRequeueAfter(time.Hour)
			}, passes))
			_, _ = w.reconcile()
			same(t, "buckets", tt.want, buckets)
		})
	}
}

func TestExternalIsRemoved(t *testing.T) {
	w := newWorld(t, deletedThing(finalizer))
	broken := errors.New("the bucket is not empty")
	removes := 0
	w.engine(step.External("Bucket", passes, func(context.Context, *request) (ctrl.Result, error) {
		if removes++; removes == 1 {
			return ctrl.Result{}, broken
		}
		return ctrlkit.NoRequeue()
	}))
	if err := w.fails(); !errors.Is(err, broken) || w.thing() == nil {
		t.Errorf("got error %v, and the object is %v", err, w.thing())
	}
	w.must()
	isGone(w)
}

// A request that was made by hand does not need an engine.
func TestRequestMadeByHand(t *testing.T) {
	req := &request{Object: newThing()}
	must(t, req.EnsureFresh(t.Context()))
	req.Snapshot()
	req.Object.Status.Size = 3
	same(t, "size in the snapshot", 0, req.Snapshot().Status.Size)
	must(t, req.Failure())
	ran := false
	_, err := step.RunWorkflow(t.Context(), req, func(*request) ctrlkit.Action {
		return ctrlkit.NewAction("run", func(context.Context) (ctrl.Result, error) { ran = true; return ctrlkit.NoRequeue() })
	})
	if err != nil || !ran {
		t.Errorf("the workflow ran: %t, with error %v", ran, err)
	}
	if _, err := step.Workflow("W", func(*request) ctrlkit.Action { return ctrlkit.Sequential() }).Do(t.Context(), req); err != nil {
		t.Error(err)
	}
	if _, err := step.External("E", passes, passes).Do(t.Context(), req); err != nil {
		t.Error(err)
	}
	key := step.NewKey[int]("n")
	step.Put(req, key, 1)
	if n, ok := step.Lookup(req, key); n != 1 || !ok {
		t.Errorf("got %d, %t", n, ok)
	}
}
