// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

// The smallest step.
// A step is a name and a function.
func ExampleStep() {
	thing := reconcileOnce(step.Step[*Thing]{Name: "SetSize", Do: func(_ context.Context, req *step.Request[*Thing]) error {
		req.Object.Status.Size = req.Object.Spec.Size
		return nil
	}})

	fmt.Println(thing.Status.Size)
	// Output: 3
}

// A step that makes a bucket outside the cluster, and deletes it with its object, which has the
// finalizer before the bucket is made.
func ExampleStep_cleanup() {
	buckets := map[string]bool{}
	bucket := step.Step[*Thing]{
		Name: "Bucket",
		Do: func(ctx context.Context, req *step.Request[*Thing]) error {
			if err := req.EnsureFresh(ctx); err != nil { // or an object that is gone would get one
				return err
			}
			buckets[req.Object.Name] = true
			return ctrlkit.RequeueWithin(time.Hour) // no event reports a change
		},
		Cleanup: func(_ context.Context, req *step.Request[*Thing]) error {
			delete(buckets, req.Object.Name)
			return nil
		},
	}

	thing := reconcileOnce(bucket)
	fmt.Println(thing.Finalizers, buckets)
	// Output: [test.example.com/things] map[a:true]
}

// A Post sets the phase at the end of each reconcile, by what has failed.
func ExampleStep_post() {
	thing := reconcileOnce(setSize, step.Step[*Thing]{Name: "Phase", Post: func(_ context.Context, req *step.Request[*Thing]) error {
		req.Object.Status.Phase = "Running"
		if req.Failure() != nil {
			req.Object.Status.Phase = "Failed"
		}
		return nil
	}})

	fmt.Println(thing.Status.Phase)
	// Output: Running
}

// Ready follows from the conditions that the steps declare.
func ExampleStep_conditions() {
	thing := reconcileOnce(step.Step[*Thing]{
		Name:       "Size",
		Conditions: []condition.Declaration{{Type: "Sized"}},
		Do: func(_ context.Context, req *step.Request[*Thing]) error {
			req.Conditions.MarkHealthy("Sized", "Fits", fmt.Sprintf("the size is %d", req.Object.Spec.Size))
			return nil
		},
	})

	fmt.Println(describe(thing, "Sized"))
	fmt.Println(describe(thing, condition.Ready))
	// Output:
	// True Fits: the size is 3
	// True Ready
}
