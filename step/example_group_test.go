// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// Two parts of the status at the same time. The step after the group sees both.
func ExampleGroup() {
	setPhase := step.Step[*Thing]{Name: "SetPhase", Do: func(_ context.Context, req *step.Request[*Thing]) error {
		req.Object.Status.Phase = "Running"
		return nil
	}}
	report := step.Step[*Thing]{Name: "Report", Do: func(_ context.Context, req *step.Request[*Thing]) error {
		fmt.Println(req.Object.Status.Phase, req.Object.Status.Size)
		return nil
	}}

	reconcileOnce(step.Group("Status", setSize, setPhase), report)
	// Output: Running 3
}

// A step that fails does not keep the others of its group from being run, but the steps after the
// group.
func ExampleGroupOrdered() {
	fails := step.Step[*Thing]{Name: "First", Do: func(context.Context, *step.Request[*Thing]) error {
		return errors.New("no connection")
	}}

	reconcileOnce(step.GroupOrdered("Both", fails, say("second")), say("not reached"))
	// Output:
	// second
	// error: First: no connection
}

// Steps for some objects only.
func ExampleWhen() {
	large := func(req *step.Request[*Thing]) bool { return req.Object.Spec.Size > 100 }

	reconcileOnce(step.When("it is large", large, say("large")), say("always"))
	// Output: always
}

// A step that is a workflow.
func ExampleWorkflow() {
	action := func(name string) ctrlkit.Action {
		return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) {
			fmt.Println(name)
			return ctrlkit.NoRequeue()
		})
	}

	reconcileOnce(step.Step[*Thing]{Name: "Run", Do: step.Workflow(func(*step.Request[*Thing]) ctrlkit.Action {
		return ctrlkit.Sequential(action("clean up old jobs"), action("run the next job"))
	})})
	// Output:
	// clean up old jobs
	// run the next job
}

// A value that a step passes to a later one.
func ExamplePut() {
	quotient := step.NewKey[int]("quotient")
	divide := step.Step[*Thing]{Name: "Divide", Do: func(_ context.Context, req *step.Request[*Thing]) error {
		step.Put(req, quotient, 42/req.Object.Spec.Size)
		return nil
	}}
	report := step.Step[*Thing]{Name: "Report", Do: func(_ context.Context, req *step.Request[*Thing]) error {
		fmt.Println(step.Lookup(req, quotient))
		return nil
	}}

	reconcileOnce(divide, report)
	// Output: 14 true
}

// Nothing was put.
func ExampleLookup() {
	quotient := step.NewKey[int]("quotient")

	_, ok := step.Lookup(&step.Request[*Thing]{}, quotient)
	fmt.Println(quotient, ok)
	// Output: quotient false
}
