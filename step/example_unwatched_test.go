// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// An engine reports a kind that its steps read, that nothing watches, and for which they ask for no
// time. One that is read on purpose is listed in Unwatched.
func ExampleOptions_unwatched() {
	readConfig := step.Step[*Thing]{Name: "ReadConfig", Do: func(ctx context.Context, req *step.Request[*Thing]) error {
		_, err := step.GetOrWait[*corev1.ConfigMap](ctx, req, client.ObjectKey{Name: "config"})
		return err
	}}
	reconcile := func(unwatched ...client.Object) {
		thing := newThing()
		c := fake.NewClientBuilder().WithScheme(newScheme()).WithRESTMapper(newMapper()).WithObjects(thing).WithStatusSubresource(thing).Build()
		report := observerFunc(func(e journal.Entry) {
			if event, ok := e.Event.(journal.Unwatched); ok {
				fmt.Printf("%s: %s %s\n", e.Object, event.Step, event)
			}
		})
		engine, err := step.New(step.Options[*Thing]{
			Name: "things", Client: c, Observers: []journal.Observer{report}, Unwatched: unwatched,
		}, readConfig)
		if err != nil {
			panic(err)
		}
		if _, err := engine.Wire(&Thing{}); err != nil { // most programs call Complete
			panic(err)
		}
		if _, err := engine.Reconcile(context.Background(), thingRequest); err != nil {
			panic(err)
		}
	}
	reconcile()
	reconcile(&corev1.ConfigMap{})
	// Output: Thing default/a: ReadConfig read ConfigMap default/config, which nothing watches
}
