// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
)

// skipping is a world whose engine skips unchanged objects, with a counter of the calls of its
// step.
func skipping(t *testing.T, do doFunc, objects ...client.Object) (w *world, runs *int) {
	t.Helper()
	w = newWorld(t, append(objects, newThing())...)
	options := w.options()
	options.APIReader = w.liveReader()
	options.SkipUnchanged = true
	runs = new(int)
	w.engineWith(options, doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
		*runs++
		return do(ctx, req)
	}))
	return w, runs
}

// What a step knows of the cluster by a watch of its own counts as what it has read.
func TestSkipUnchangedDependsOnMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		changes := uint64(1)
		w, runs := skipping(t, does(func(_ context.Context, req *request) { req.DependOn(func() uint64 { return changes }) }))
		for _, want := range []int{1, 2, 2} { // the first one writes the conditions
			if w.must(); *runs != want {
				t.Fatalf("the step ran %d times, want %d", *runs, want)
			}
		}
		for _, changes = range []uint64{7, 0} {
			before := *runs
			w.must()
			same(t, "runs", before+1, *runs)
			w.must()
			same(t, "runs", before+1, *runs)
		}
	})
}

// An annotation is saved at once, and only if it differs.
func TestAnnotate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		value := "1"
		w, _ := skipping(t, func(ctx context.Context, req *request) (ctrl.Result, error) {
			if err := req.Annotate(ctx, "example.com/a", value); err != nil {
				return ctrlkit.RequeueIfError(err)
			}
			var now Thing
			if err := req.APIReader.Get(ctx, client.ObjectKeyFromObject(req.Object), &now); err != nil || now.Annotations["example.com/a"] != value {
				t.Errorf("after Annotate, the API server has %v and error %v, want %q", now.Annotations, err, value)
			}
			same(t, "the field owner", "things", req.FieldOwner())
			return ctrlkit.NoRequeue()
		})
		for _, value = range []string{"1", "1", "2", ""} {
			w.must()
		}
	})
}
