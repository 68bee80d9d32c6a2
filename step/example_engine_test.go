// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/step"
)

// setSize is a step that copies the size from the spec to the status.
var setSize = step.Step[*Thing]{Name: "SetSize", Do: func(_ context.Context, req *step.Request[*Thing]) error {
	req.Object.Status.Size = req.Object.Spec.Size
	return nil
}}

// say returns a step that prints its name.
func say(name string) step.Step[*Thing] {
	return step.Step[*Thing]{Name: name, Do: func(context.Context, *step.Request[*Thing]) error {
		fmt.Println(name)
		return nil
	}}
}

// reconcileOnce reconciles a Thing of size 3 in steps, and returns it.
func reconcileOnce(steps ...step.Step[*Thing]) *Thing {
	thing := newThing()
	thing.Spec.Size = 3
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithRESTMapper(newMapper()).WithObjects(thing).WithStatusSubresource(thing).Build()
	engine, err := step.New(step.Options[*Thing]{Name: "things", Client: c}, steps...)
	if err != nil {
		panic(err)
	}
	if _, err := engine.Reconcile(context.Background(), thingRequest); err != nil {
		fmt.Println("error:", err)
	}
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(thing), thing); err != nil {
		panic(err)
	}
	return thing
}

// An engine is a reconcile.Reconciler. What its steps change is saved.
func ExampleNew() {
	thing := newThing()
	thing.Spec.Size = 3
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithRESTMapper(newMapper()).WithObjects(thing).WithStatusSubresource(thing).Build()

	engine, err := step.New(step.Options[*Thing]{Name: "things", Client: c}, setSize)
	if err != nil {
		panic(err)
	}
	_, err = engine.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(thing)})

	_ = c.Get(context.Background(), client.ObjectKeyFromObject(thing), thing)
	fmt.Println(thing.Status.Size, err)
	// Output: 3 <nil>
}

// With the reader of the manager, the engine finds out whether the cache is stale.
func ExampleOptions() {
	newEngine := func(mgr ctrl.Manager) (*step.Engine[*Thing], error) {
		return step.New(step.Options[*Thing]{
			Name:      "things",
			Client:    mgr.GetClient(),
			APIReader: mgr.GetAPIReader(),
			Recorder:  mgr.GetEventRecorder("things"),
		}, setSize)
	}
	_ = newEngine
}

// The controller of an operator.
func ExampleEngine_Complete() {
	setUp := func(mgr ctrl.Manager) error {
		engine, err := step.New(step.Options[*Thing]{Name: "things", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader()}, setSize)
		if err != nil {
			return err
		}
		return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Thing{}))
	}
	_ = setUp
}
