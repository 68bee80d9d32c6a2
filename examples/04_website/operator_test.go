// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	dns := newMemoryDNS()
	_, stop := start(t, plane, dns)
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
		t.Errorf("a Website that is Ready has %d replicas available and error %v, want 3: %+v", deployment.Status.AvailableReplicas, err, deployment.Status)
	}
	if got := deployment.Spec.Template.Spec.PriorityClassName; got != "default.shop-100" {
		t.Errorf("the Pods have the priority class %q", got)
	}
	if got := dns.target("shop.example.com"); got != "shop.default.svc" {
		t.Errorf("the host points to %q", got)
	}

	checkTaken(t, user, theirs)
	checkRollOut(t, user, &deployment)
	checkRepair(t, user, shop)
	checkSwitches(t, user)
	stop()
	checkRestart(t, plane)

	// What belongs to a Website goes with it.
	_, _ = start(t, plane, dns)
	checkDeletion(t, user, shop)
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

// start runs the operator until it is stopped, at the latest when the test ends. It returns the
// number of its writes.
func start(t *testing.T, plane *controlplane.ControlPlane, dns DNS) (writes *atomic.Int64, stop func()) {
	t.Helper()
	writes = &atomic.Int64{}
	config := rest.CopyConfig(plane.Config())
	config.Impersonate.UserName = "system:serviceaccount:website-system:website-operator"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, writes} })
	options := ctrl.Options{Logger: testr.NewWithOptions(t, testr.Options{LogTimestamp: true})}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = ptr.To(true) // another test may run it, too
	mgr, err := newManager(config, options, dns)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the operator ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return writes, stop
}

// counting is a transport that counts writes.
type counting struct {
	http.RoundTripper
	writes *atomic.Int64
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.writes.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// await returns an object as soon as it is as wanted.
func await(t *testing.T, user client.WithWatch, name string, done func(*v1.Website) bool) *v1.Website {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a failure shows the log of the operator
	defer cancel()
	w, err := user.Watch(ctx, &v1.WebsiteList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
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
