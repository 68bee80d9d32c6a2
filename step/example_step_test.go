// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

// The smallest step.
func ExampleFunc() {
	thing := reconcileOnce(step.Func("SetSize", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
		req.Object.Status.Size = req.Object.Spec.Size
		return ctrlkit.NoRequeue()
	}))

	fmt.Println(thing.Status.Size)
	// Output: 3
}

// A bucketStep makes a bucket outside the cluster, and deletes it with its object.
type bucketStep struct{ buckets map[string]bool }

var _ step.Cleaner[*Thing] = bucketStep{}

func (bucketStep) Name() string { return "Bucket" }

func (s bucketStep) Do(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
	s.buckets[req.Object.Name] = true
	return ctrlkit.NoRequeue()
}

func (s bucketStep) Cleanup(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
	delete(s.buckets, req.Object.Name)
	return ctrlkit.NoRequeue()
}

// The object has the finalizer before its bucket is made.
func ExampleCleaner() {
	buckets := bucketStep{make(map[string]bool)}

	thing := reconcileOnce(buckets)
	fmt.Println(thing.Finalizers, buckets.buckets)
	// Output: [test.example.com/things] map[a:true]
}

// A phaseStep sets the phase at the end of each reconcile, by what has failed.
type phaseStep struct{ step.Step[*Thing] }

var _ step.PostStep[*Thing] = phaseStep{}

func (phaseStep) Post(_ context.Context, req *step.Request[*Thing]) error {
	req.Object.Status.Phase = "Running"
	if req.Failure() != nil {
		req.Object.Status.Phase = "Failed"
	}
	return nil
}

func ExamplePostStep() {
	thing := reconcileOnce(phaseStep{setSize})

	fmt.Println(thing.Status.Phase)
	// Output: Running
}

// A sizeStep keeps the condition Sized.
type sizeStep struct{}

var _ step.ConditionDeclarer[*Thing] = sizeStep{}

func (sizeStep) Name() string { return "Size" }

func (sizeStep) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: "Sized"}}
}

func (sizeStep) Do(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
	req.Conditions.MarkHealthy("Sized", "Fits", fmt.Sprintf("the size is %d", req.Object.Spec.Size))
	return ctrlkit.NoRequeue()
}

// Ready follows from the conditions that the steps declare.
func ExampleConditionDeclarer() {
	thing := reconcileOnce(sizeStep{})

	fmt.Println(describe(thing, "Sized"))
	fmt.Println(describe(thing, condition.Ready))
	// Output:
	// True Fits: the size is 3
	// True Ready
}
