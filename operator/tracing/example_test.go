// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator/tracing"
	"github.com/ctrlkit/ctrlkit/step"
)

// The spans of an engine after one reconcile, in which an action waits.
func ExampleNew() {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)) // an operator has a batcher
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	action := func(name string, outcome func() (ctrl.Result, error)) ctrlkit.Action {
		return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return outcome() })
	}
	engine, err := step.New(step.Options[*corev1.Secret]{
		Name:      "rotation",
		Client:    fake.NewClientBuilder().WithObjects(secret).Build(),
		Observers: []journal.Observer{tracing.New(provider)},
	}, step.Step[*corev1.Secret]{Name: "Rotate", Do: step.Workflow(func(*step.Request[*corev1.Secret]) ctrlkit.Action {
		return ctrlkit.Sequential(
			action("Generate", ctrlkit.NoRequeue),
			action("Restart", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("the database to restart") }))
	})})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := engine.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(secret)}); err != nil {
		fmt.Println(err)
	}

	spans := exporter.GetSpans()
	names := make(map[trace.SpanID]string)
	for _, s := range spans {
		names[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range spans {
		fmt.Printf("%s, in %q", s.Name, names[s.Parent.SpanID()])
		for _, e := range s.Events {
			fmt.Printf(", %s %v", e.Name, e.Attributes[0].Value.AsString())
		}
		fmt.Println()
	}
	// Output:
	// Generate, in "Rotate: Do"
	// Restart, in "Rotate: Do", Wait the database to restart
	// Rotate: Do, in "Reconcile Secret"
	// Reconcile Secret, in ""
}
