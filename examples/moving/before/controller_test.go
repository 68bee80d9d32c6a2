// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/ctrlkit/ctrlkit/examples/moving/api/v1"
	"github.com/ctrlkit/ctrlkit/step/steptest"
)

// newClient returns a client of an API server in memory that has a Cache. A scaffolded test has one
// of envtest.
func newClient(t *testing.T, cache *v1.Cache) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return steptest.NewRequest(t, cache, steptest.WithScheme(scheme), steptest.WithCRDs("../config/crd")).Client
}

// A scaffolded test calls Reconcile on the reconciler, twice, without a manager.
func TestReconcile(t *testing.T) {
	key := client.ObjectKey{Namespace: "default", Name: "cache"}
	cache := &v1.Cache{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: v1.CacheSpec{Replicas: 1}}
	c := newClient(t, cache)

	reconciler := &CacheReconciler{Client: c, Scheme: c.Scheme()}
	for range 2 {
		if _, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}

	if err := c.Get(t.Context(), key, cache); err != nil {
		t.Fatal(err)
	}
	if got := meta.FindStatusCondition(cache.Status.Conditions, available); got == nil || got.Status != metav1.ConditionTrue || got.Reason != "Deployed" {
		t.Errorf("the condition %s: %+v", available, got)
	}
	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), key, deployment); err != nil || !metav1.IsControlledBy(deployment, cache) {
		t.Errorf("the Deployment: %v, %+v", err, deployment.ObjectMeta)
	}
}
