// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/condition/conditiontest"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// The operator does its work against a real control plane, whose Pods become ready, with the
// permissions of its role and no others.
func TestOperator(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{Parts: controlplane.AllParts, CRDs: []string{"config/crd/bases"}})
	user, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: simScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, user, "config/rbac/operator.yaml", "config/rbac/role.yaml", "config/admission/policy.yaml")
	dns := start(t, plane)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog"}, Data: map[string]string{"whose": "theirs"}}
	if err := user.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	applyAll(t, user, "config/samples/website.yaml")
	shop := await(t, user, "shop", func(site *v1.Website) bool { return reason(site, condition.Ready) == condition.ReasonReady })
	blog := await(t, user, "blog", func(site *v1.Website) bool { return reason(site, condition.Reconciling) == step.ReasonWaiting })
	conditiontest.Check(t, shop)
	conditiontest.Check(t, blog)
	var deployment appsv1.Deployment
	if err := user.Get(t.Context(), client.ObjectKeyFromObject(shop), &deployment); err != nil || deployment.Status.AvailableReplicas != 3 {
		t.Errorf("a Website that is Ready has %d replicas available and error %v, want 3", deployment.Status.AvailableReplicas, err)
	}
	if got := dns.target("shop.example.com"); got != "shop.default.svc" {
		t.Errorf("the host points to %q", got)
	}

	// With its Secret, the other one continues, and finds that a name is taken.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog-credentials"}}
	if err := user.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	blog = await(t, user, "blog", func(site *v1.Website) bool { return reason(site, condition.Stalled) == step.ReasonOwnedByAnother })
	conditiontest.Check(t, blog)
	var now corev1.ConfigMap
	if err := user.Get(t.Context(), client.ObjectKeyFromObject(theirs), &now); err != nil || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the foreign ConfigMap: version %s and error %v, want that it is untouched", now.ResourceVersion, err)
	}

	checkRollOut(t, user, &deployment)

	// The record goes with its Website.
	if err := user.Delete(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, user, shop)
	if got := dns.target("shop.example.com"); got != "" {
		t.Errorf("after the cleanup the host points to %q", got)
	}
}

// checkRollOut changes the credentials, and checks that the Deployment is rolled out with them.
func checkRollOut(t *testing.T, user client.WithWatch, deployment *appsv1.Deployment) {
	t.Helper()
	const annotation = "web.ctrlkit.dev/credentials"
	before := deployment.Spec.Template.Annotations[annotation]
	changed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop-credentials"}, StringData: map[string]string{"DB_PASSWORD": "changed"}}
	if err := user.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	await(t, user, "shop", func(site *v1.Website) bool {
		if err := user.Get(t.Context(), client.ObjectKeyFromObject(site), deployment); err != nil {
			t.Fatal(err)
		}
		return reason(site, condition.Ready) == condition.ReasonReady && deployment.Spec.Template.Annotations[annotation] != before
	})
}

// start runs the operator until the test ends.
func start(t *testing.T, plane *controlplane.ControlPlane) *memoryDNS {
	t.Helper()
	config := rest.CopyConfig(plane.Config())
	config.Impersonate.UserName = "system:serviceaccount:website-system:website-operator"
	options := ctrl.Options{Logger: testr.NewWithOptions(t, testr.Options{LogTimestamp: true})}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = ptr.To(true) // another test may run it, too
	dns := newMemoryDNS()
	mgr, err := newManager(config, options, dns)
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
	return dns
}

// awaitGone waits until an object does not exist any more.
func awaitGone(t *testing.T, user client.WithWatch, obj *v1.Website) {
	t.Helper()
	var list v1.WebsiteList
	if err := user.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	found := false
	for i := range list.Items {
		found = found || list.Items[i].UID == obj.UID
	}
	if !found {
		return
	}
	w, err := user.Watch(t.Context(), &v1.WebsiteList{}, client.InNamespace(obj.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if now, ok := event.Object.(*v1.Website); ok && event.Type == watch.Deleted && now.UID == obj.UID {
			return
		}
	}
	t.Fatalf("the watch ended before %s was gone", obj.Name)
}

// await returns an object as soon as it is as wanted.
func await(t *testing.T, user client.WithWatch, name string, done func(*v1.Website) bool) *v1.Website {
	t.Helper()
	w, err := user.Watch(t.Context(), &v1.WebsiteList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if obj, ok := event.Object.(*v1.Website); ok && done(obj) {
			return obj
		}
	}
	t.Fatalf("the watch ended before %s was as wanted", name)
	return nil
}

// reason returns the reason of a condition, if the condition is about the present spec.
func reason(obj *v1.Website, kind string) string {
	for _, c := range obj.Status.Conditions {
		if c.Type == kind && c.ObservedGeneration == obj.Generation && (kind != condition.Ready || c.Status == metav1.ConditionTrue) {
			return c.Reason
		}
	}
	return ""
}
