// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/07_project/backup"
	"github.com/ctrlkit/ctrlkit/examples/07_project/membership"
	"github.com/ctrlkit/ctrlkit/handlers"
)

// The operator does its work against a real control plane, with the permissions of its role and no
// others.
func TestOperator(t *testing.T) {
	c := startCluster(t)
	applyAll(t, c, "config/samples/project.yaml", "config/samples/setting.yaml")
	project := &v1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	await(t, c, project, "populated", func(p *v1.Project) bool {
		return p.Status.Namespaces == 2 && len(p.Status.Conditions) == 1 && p.Status.Conditions[0].Type == membership.ConditionPopulated && p.Status.Conditions[0].Status == metav1.ConditionTrue
	})
	prod := newNamespace("shop-prod")
	await(t, c, prod, "labeled", func(ns *corev1.Namespace) bool { return ns.Labels["team"] == "shop" })
	await(t, c, newQuota("shop-prod"), "there", func(*corev1.ResourceQuota) bool { return true })
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-prod", Name: "project-edit"}}
	await(t, c, binding, "there", func(b *rbacv1.RoleBinding) bool { return b.Subjects[0].Name == "developers" })

	t.Run("a Setting", func(t *testing.T) { checkSetting(t, c) })
	t.Run("a kind that comes later", func(t *testing.T) { checkLateKind(t, c) })
	t.Run("a Namespace leaves", func(t *testing.T) {
		c.patch(t, prod, `{"metadata":{"labels":{"project.ctrlkit.dev/project":null}}}`)
		await(t, c, prod, "without the labels", func(ns *corev1.Namespace) bool { return ns.Labels["team"] == "" })
		c.gone(t, newQuota("shop-prod"))
		c.gone(t, binding)
	})
	t.Run("the Project is deleted", func(t *testing.T) {
		c.must(t, c.Delete(t.Context(), project))
		c.gone(t, project)
		c.gone(t, newQuota("shop-dev"))
		await(t, c, newNamespace("shop-dev"), "without the labels", func(ns *corev1.Namespace) bool { return ns.Labels["tier"] == "" && ns.Labels["team"] == "" })
	})
}

// checkSetting switches the labels off and on. While they are off, the other handlers do their
// work.
func checkSetting(t *testing.T, c *cluster) {
	labels, project := newSetting("labels"), &v1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	c.patch(t, labels, `{"spec":{"state":"Disabled"}}`)
	c.awaitHandlers(t, "Namespace", "access, quota")
	c.patch(t, project, `{"spec":{"labels":{"tier":"gold"},"quota":{"pods":"7"}}}`)
	await(t, c, newQuota("shop-dev"), "changed", func(q *corev1.ResourceQuota) bool { return q.Spec.Hard.Pods().Value() == 7 })
	dev := newNamespace("shop-dev")
	c.must(t, c.Get(t.Context(), client.ObjectKeyFromObject(dev), dev))
	if dev.Labels["tier"] != "" {
		t.Errorf("labels %v were put on while that is switched off", dev.Labels)
	}
	c.patch(t, labels, `{"spec":{"state":"Enabled"}}`)
	await(t, c, dev, "labeled", func(ns *corev1.Namespace) bool { return ns.Labels["tier"] == "gold" })
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
		c.patch(t, dev, `{"metadata":{"labels":{"team":"mine"}}}`)
		await(t, c, dev, "labeled again", func(ns *corev1.Namespace) bool { return ns.Labels["team"] == "shop" })

		crd := readDefinition(t)
		c.must(t, c.Create(t.Context(), crd))
		c.awaitKind(t, handlers.StateRunning)
		c.must(t, c.registry.Ready(nil))
		plan := newPlan()
		c.must(t, c.Create(t.Context(), plan))
		await(t, c, plan, "located", func(p *unstructured.Unstructured) bool {
			location, _, _ := unstructured.NestedString(p.Object, "status", "location")
			return location == "shop/shop-dev/nightly"
		})
		c.must(t, c.Delete(t.Context(), crd))
	}
	c.awaitKind(t, handlers.StateWaiting)
}

// A cluster is a real control plane with the operator, and a client as users have it.
type cluster struct {
	client.WithWatch
	registry *handlers.Registry
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	plane := controlplanetest.Start(t, controlplane.Options{Parts: controlplane.AllParts, CRDs: []string{"config/crd/bases"}})
	user, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: simScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, user, "config/rbac/operator.yaml", "config/rbac/role.yaml")
	config := rest.CopyConfig(plane.Config())
	config.Impersonate.UserName = "system:serviceaccount:project-system:project-operator"
	options := ctrl.Options{Logger: testr.NewWithOptions(t, testr.Options{LogTimestamp: true})}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = ptr.To(true) // another test may run it, too
	mgr, registry, err := newManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the operator ended: %v", err)
		}
	})
	return &cluster{user, registry}
}

func newQuota(namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "project"}}
}

func (c *cluster) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) patch(t *testing.T, obj client.Object, patch string) {
	t.Helper()
	c.must(t, c.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
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
