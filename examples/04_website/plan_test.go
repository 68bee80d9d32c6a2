// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
	"github.com/ctrlkit/ctrlkit/step"
)

// operate is the operator of one namespace, as a process.
func operate(arguments []string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	options := ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{arguments[0]: {}}}}
	options.Metrics.BindAddress = "0"
	mgr, err := website(newMemoryDNS()).Manager(config, options)
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

// planFor returns what apply.PlanFor says about a change of a Website. All writes are dry runs.
func planFor(t *testing.T, c *exampletest.Cluster, name string, edit func(*v1.WebsiteSpec)) (result *apply.Plan) {
	t.Helper()
	parts := newParts()
	dry := client.NewDryRunClient(c.WithWatch)
	engine, err := step.New(step.Options[*v1.Website]{Name: "website", Client: dry, APIReader: dry},
		step.Step[*v1.Website]{Name: "Credentials", Do: readCredentials},
		step.Step[*v1.Website]{Name: "Plan", Do: func(ctx context.Context, req *step.Request[*v1.Website]) error {
			spec := req.Object.Spec.DeepCopy()
			defer func() { req.Object.Spec = *spec }() // a step may not change it
			edit(&req.Object.Spec)
			var err error
			result, err = apply.PlanFor(ctx, req, parts)
			return err
		}})
	exampletest.Must(t, err)
	_, err = engine.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: c.Namespace, Name: name}})
	exampletest.Must(t, err)
	return result
}

// checkAgreement checks that a plan and those of apply.PlanFor do the same to the same objects.
func checkAgreement(t *testing.T, all *plan.Plan, first map[string]*apply.Plan) {
	t.Helper()
	ours := map[apply.Action]plan.Action{
		apply.ActionCreate: plan.Create, apply.ActionChange: plan.Update, apply.ActionReplace: plan.Replace, apply.ActionPrune: plan.Delete,
	}
	want, got := map[string][]string{}, map[string][]string{}
	for site, p := range first {
		for _, c := range p.Changes {
			line := fmt.Sprintf("%s %s", ours[c.Action], c.Object)
			for _, f := range c.Fields {
				line += fmt.Sprintf(" %v->%v", f.From, f.To)
			}
			want[site] = append(want[site], line)
		}
		slices.Sort(want[site])
	}
	for _, c := range all.Changes {
		site := strings.TrimPrefix(c.Owner, "Website/")
		if c.Kind == "PriorityClass" { // it has no owner: it is cluster-scoped
			_, name, _ := strings.Cut(c.Name, ".")
			site, _, _ = strings.Cut(name, "-")
		}
		if first[site] == nil || c.By != plan.Operator {
			continue
		}
		line := fmt.Sprintf("%s %s", c.Action, c)
		for _, f := range c.Fields {
			if !strings.HasPrefix(f.Path, "status.") && !strings.Contains(f.Path, "deployment.kubernetes.io") {
				line += fmt.Sprintf(" %v->%v", f.From, f.To)
			}
		}
		got[site] = append(got[site], line)
		slices.Sort(got[site])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the plan is not that of apply.PlanFor (-PlanFor +plan):\n%s", diff)
	}
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
	first := map[string]*apply.Plan{
		"s0": planFor(t, c, "s0", func(s *v1.WebsiteSpec) { s.Content["index.html"], s.Priority = "Closed", new(int32(200)) }),
		"s1": planFor(t, c, "s1", func(s *v1.WebsiteSpec) { s.Replicas = new(int32(4)) }),
		"s4": planFor(t, c, "s4", func(s *v1.WebsiteSpec) { s.Image = "nginx:1.30" }),
		"s5": planFor(t, c, "s5", func(s *v1.WebsiteSpec) { s.Public = false }),
		"s6": planFor(t, c, "s6", func(*v1.WebsiteSpec) {}),
	}
	all := p.Check(planned,
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
	checkAgreement(t, all, first)
	p.CheckRefused(exampletest.Applied(site(0, map[string]any{"replicas": int64(-1)})))
}
