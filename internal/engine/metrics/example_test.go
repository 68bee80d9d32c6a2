// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/engine/metrics"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// The series of an engine after one reconcile, which waits.
func ExampleNew() {
	registry := prometheus.NewRegistry() // an operator has that of sigs.k8s.io/controller-runtime/pkg/metrics
	observer, err := metrics.New(registry, metrics.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	engine, err := step.New(step.Options[*corev1.Secret]{
		Name:      "rotation",
		Client:    fake.NewClientBuilder().WithObjects(secret).Build(),
		Observers: []journal.Observer{observer},
	}, step.Step[*corev1.Secret]{Name: "Rotate", Do: func(context.Context, *step.Request[*corev1.Secret]) error {
		return ctrlkit.Wait("the database to restart")
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := engine.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(secret)}); err != nil {
		fmt.Println(err)
	}

	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetCounter() == nil {
				continue
			}
			fmt.Print(family.GetName())
			for _, l := range m.GetLabel() {
				fmt.Printf(" %s=%s", l.GetName(), l.GetValue())
			}
			fmt.Println(":", m.GetCounter().GetValue())
		}
	}
	// Output:
	// ctrlkit_reconcile_causes_total cause=start controller=rotation: 1
	// ctrlkit_reconciles_total controller=rotation result=waiting: 1
	// ctrlkit_steps_total controller=rotation outcome=waiting phase=Do step=Rotate: 1
}
