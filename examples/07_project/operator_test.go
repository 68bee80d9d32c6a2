// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/07_project/backup"
	"github.com/ctrlkit/ctrlkit/examples/07_project/membership"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/handlers"
)

var shared = ctrlkittest.SharedControlPlane{Options: controlplane.Options{Parts: controlplane.AllParts, CRDs: []string{"config/crd/bases"}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The operator does its work against a real control plane, with the permissions of its role and no
// others.
func TestOperator(t *testing.T) {
	c := startCluster(t)
	c.Apply(t, "config/samples/project.yaml", "config/samples/setting.yaml")
	project := &v1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	exampletest.AwaitObject(t, c.Cluster, project, func(p *v1.Project) bool {
		return p.Status.Namespaces == 2 && len(p.Status.Conditions) == 1 && p.Status.Conditions[0].Type == membership.ConditionPopulated && p.Status.Conditions[0].Status == metav1.ConditionTrue
	})
	prod := newNamespace("shop-prod")
	exampletest.AwaitObject(t, c.Cluster, prod, func(ns *corev1.Namespace) bool { return ns.Labels["team"] == "shop" })
	exampletest.AwaitObject(t, c.Cluster, newQuota("shop-prod"), func(*corev1.ResourceQuota) bool { return true })
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "project-edit"}}
	exampletest.AwaitObject(t, c.Cluster, binding, func(b *rbacv1.RoleBinding) bool { return b.Subjects[0].Name == "developers" })

	t.Run("a Setting", func(t *testing.T) { checkSetting(t, c) })
	t.Run("a kind that comes later", func(t *testing.T) { checkLateKind(t, c) })
	t.Run("a Namespace leaves", func(t *testing.T) {
		c.Patch(t, prod, `{"metadata":{"labels":{"project.ctrlkit.dev/project":null}}}`)
		exampletest.AwaitObject(t, c.Cluster, prod, func(ns *corev1.Namespace) bool { return ns.Labels["team"] == "" })
		c.Gone(t, newQuota("shop-prod"))
		c.Gone(t, binding)
	})
	t.Run("the Project is deleted", func(t *testing.T) {
		exampletest.Must(t, c.Delete(t.Context(), project))
		c.Gone(t, project)
		c.Gone(t, newQuota("shop-dev"))
		exampletest.AwaitObject(t, c.Cluster, newNamespace("shop-dev"), func(ns *corev1.Namespace) bool { return ns.Labels["tier"] == "" && ns.Labels["team"] == "" })
	})
}

// checkSetting switches the labels off and on. While they are off, the other handlers do their
// work.
func checkSetting(t *testing.T, c *cluster) {
	labels, project := newSetting("labels"), &v1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	c.Patch(t, labels, `{"spec":{"state":"Disabled"}}`)
	c.awaitHandlers(t, "Namespace", "access, quota")
	c.Patch(t, project, `{"spec":{"labels":{"tier":"gold"},"quota":{"pods":"7"}}}`)
	exampletest.AwaitObject(t, c.Cluster, newQuota("shop-dev"), func(q *corev1.ResourceQuota) bool { return q.Spec.Hard.Pods().Value() == 7 })
	dev := newNamespace("shop-dev")
	exampletest.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(dev), dev))
	if dev.Labels["tier"] != "" {
		t.Errorf("labels %v were put on while that is switched off", dev.Labels)
	}
	c.Patch(t, labels, `{"spec":{"state":"Enabled"}}`)
	exampletest.AwaitObject(t, c.Cluster, dev, func(ns *corev1.Namespace) bool { return ns.Labels["tier"] == "gold" })
}

// checkLateKind installs BackupPlans, removes them, and installs them again. Where they are missing,
// readiness names them, and the other handlers do their work.
func checkLateKind(t *testing.T, c *cluster) {
	for range 2 {
		c.awaitKind(t, handlers.StateWaiting)
		if err := c.registry.Ready(nil); err == nil || !strings.Contains(err.Error(), "BackupPlan.backup.ctrlkit.dev: waiting: ") {
			t.Errorf("the check of readiness says %v", err)
		}
		dev := newNamespace("shop-dev")
		c.Patch(t, dev, `{"metadata":{"labels":{"team":"mine"}}}`)
		exampletest.AwaitObject(t, c.Cluster, dev, func(ns *corev1.Namespace) bool { return ns.Labels["team"] == "shop" })

		crd := readDefinition(t)
		exampletest.Must(t, c.Create(t.Context(), crd))
		c.awaitKind(t, handlers.StateRunning)
		exampletest.Must(t, c.registry.Ready(nil))
		plan := newPlan()
		exampletest.Must(t, c.Create(t.Context(), plan))
		exampletest.AwaitObject(t, c.Cluster, plan, func(p *unstructured.Unstructured) bool {
			location, _, _ := unstructured.NestedString(p.Object, "status", "location")
			return location == "shop/shop-dev/nightly"
		})
		exampletest.Must(t, c.Delete(t.Context(), crd))
	}
	c.awaitKind(t, handlers.StateWaiting)
}

// A cluster is a real control plane with the operator.
type cluster struct {
	*exampletest.Cluster
	registry *handlers.Registry
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := exampletest.NewCluster(t, &shared, simScheme(t))
	config, options := c.Operator(t, "project")
	options.Cache.DefaultNamespaces = nil // it is about all of them
	var registry *handlers.Registry
	watched := project
	watched.Controls = []func(ctrl.Manager) error{func(mgr ctrl.Manager) (err error) {
		registry, err = addHandlers(mgr)
		return err
	}}
	mgr, err := watched.Manager(config, options)
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)
	return &cluster{c, registry}
}

func newQuota(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "project"}}
}

func (c *cluster) awaitKind(t *testing.T, state handlers.State) {
	t.Helper()
	c.awaitRegistry(t, "BackupPlans are "+string(state), func(k handlers.KindStatus) bool {
		return k.Kind == backup.PlanKind && k.State == state
	})
}

// awaitHandlers waits until the handlers of a kind are these.
func (c *cluster) awaitHandlers(t *testing.T, kind, names string) {
	t.Helper()
	c.awaitRegistry(t, "the handlers of "+kind+" are "+names, func(k handlers.KindStatus) bool {
		return k.Kind.Kind == kind && strings.Join(k.Handlers, ", ") == names
	})
}

// awaitRegistry waits until a kind of the registry is as wanted.
func (c *cluster) awaitRegistry(t *testing.T, what string, done func(handlers.KindStatus) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return slices.ContainsFunc(c.registry.Kinds(), done), nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %+v", what, err, c.registry.Kinds())
	}
}
