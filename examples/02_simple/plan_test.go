// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
)

// operate is the operator of one namespace, as a process.
func operate(arguments []string) error {
	options := ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{arguments[0]: {}}}}
	options.Metrics.BindAddress = "0"
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := simple.Manager(config, options)
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// What a plan says about changes of a status and its conditions is what happens when they are made.
func TestPlanIsWhatHappens(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t))
	p := exampletest.NewPlanner(t, c, shared.ForTest(t), c.Namespace)
	simples := schema.GroupVersionResource{Group: v1.GroupVersion.Group, Version: v1.GroupVersion.Version, Resource: "simples"}
	simple := func(n int, dividend, divisor int64) *unstructured.Unstructured {
		return p.Object("demo.ctrlkit.dev/v1", "Simple", fmt.Sprintf("s%d", n), map[string]any{"spec": map[string]any{"dividend": dividend, "divisor": divisor}})
	}
	for n := range 5 {
		p.Create(simple(n, 7, 2))
	}
	p.Operate(func() bool {
		var list v1.SimpleList
		exampletest.Must(t, c.List(t.Context(), &list, client.InNamespace(c.Namespace)))
		ready := 0
		for i := range list.Items {
			if exampletest.Ready(&list.Items[i]) {
				ready++
			}
		}
		return ready == 5
	})
	labelled := simple(3, 7, 2)
	labelled.SetLabels(map[string]string{"team": "math"})
	p.Check([]schema.GroupVersionResource{simples},
		exampletest.Applied(simple(0, 9, 2)), // another result
		exampletest.Applied(simple(1, 7, 0)), // a mistake
		exampletest.Deleted(simples, "s2"),
		exampletest.Applied(labelled),        // nothing for the operator to do
		exampletest.Applied(simple(5, 1, 1)), // a new object
		exampletest.Applied(simple(6, 1, 0)), // and one with a mistake
	)
}
