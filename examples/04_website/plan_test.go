// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
)

// operate is the operator of one namespace, as a process.
func operate(arguments []string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	options := ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{arguments[0]: {}}}}
	options.Metrics.BindAddress = "0"
	mgr, err := newManager(config, options, newMemoryDNS())
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

var websites = schema.GroupVersionResource{Group: v1.GroupVersion.Group, Version: v1.GroupVersion.Version, Resource: "websites"}

// planned are the resources that are compared.
var planned = []schema.GroupVersionResource{
	websites,
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "pods"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
}

// What a plan says about ten changes is what happens when they are made.
func TestPlanIsWhatHappens(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t), "config/admission/policy.yaml")
	p := exampletest.NewPlanner(t, c, shared.ForTest(t), c.Namespace)
	site := func(n int, spec map[string]any) *unstructured.Unstructured {
		content := map[string]any{"host": fmt.Sprintf("s%d.example.com", n), "credentialsSecret": fmt.Sprintf("secret%d", n), "content": map[string]any{"index.html": "Open"}, "public": true, "replicas": int64(2)}
		for name, value := range spec {
			content[name] = value
		}
		return p.Object("web.ctrlkit.dev/v1", "Website", fmt.Sprintf("s%d", n), map[string]any{"spec": content})
	}
	secret := func(n int, password string) *unstructured.Unstructured {
		return p.Object("v1", "Secret", fmt.Sprintf("secret%d", n), map[string]any{"data": map[string]any{"PASSWORD": password}})
	}
	for n := range 10 {
		if n != 9 {
			p.Create(secret(n, "b2xk"))
		}
		if n != 3 {
			p.Create(site(n, map[string]any{"priority": int64(100)}))
		}
	}
	p.Operate(func() bool {
		var list appsv1.DeploymentList
		exampletest.Must(t, c.List(t.Context(), &list, client.InNamespace(c.Namespace)))
		ready := 0
		for _, d := range list.Items {
			if d.Status.AvailableReplicas == 2 {
				ready++
			}
		}
		return ready == 8
	})
	labelled := site(6, nil)
	labelled.SetLabels(map[string]string{"team": "shop"})
	p.Check(planned,
		exampletest.Applied(site(0, map[string]any{"content": map[string]any{"index.html": "Closed"}, "priority": int64(200)})), // a child with another name
		exampletest.Applied(site(1, map[string]any{"replicas": int64(4)})),                                                      // a scale
		exampletest.Deleted(websites, "s2"),
		exampletest.Applied(secret(3, "b2xk")), // a new object
		exampletest.Applied(site(3, nil)),
		exampletest.Applied(site(4, map[string]any{"image": "nginx:1.30"})), // a rollout
		exampletest.Applied(site(5, map[string]any{"public": false})),       // a child that is not wanted any more
		exampletest.Applied(labelled),
		exampletest.Deleted(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "s7"), // a child that is wanted
		exampletest.Applied(secret(8, "bmV3")), // a reference that changes
		exampletest.Applied(secret(9, "b2xk")), // what one waits for
	)
	p.CheckRefused(exampletest.Applied(site(0, map[string]any{"replicas": int64(-1)})))
}
