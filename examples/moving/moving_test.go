// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package moving_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	after "github.com/ctrlkit/ctrlkit/examples/moving/after"
	v1 "github.com/ctrlkit/ctrlkit/examples/moving/api/v1"
	before "github.com/ctrlkit/ctrlkit/examples/moving/before"
	onestep "github.com/ctrlkit/ctrlkit/examples/moving/onestep"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The test of the reconciler need not change when it moves. A scaffolded one calls Reconcile,
// twice, without a manager, with a client of envtest.
func TestReconcile(t *testing.T) {
	for _, stage := range []string{"before", "onestep", "after"} {
		t.Run(stage, func(t *testing.T) {
			c, cache := newClient(t)
			deployment := reconcileTwice(t, c, map[string]reconcile.Reconciler{
				"before":  &before.CacheReconciler{Client: c, Scheme: c.Scheme()},
				"onestep": &onestep.CacheReconciler{Client: c, Scheme: c.Scheme()},
				"after":   &after.CacheReconciler{Client: c, Scheme: c.Scheme()},
			}[stage])

			exampletest.Must(t, c.Get(t.Context(), key, cache))
			if got := meta.FindStatusCondition(cache.Status.Conditions, "Available"); got == nil || got.Status != metav1.ConditionTrue || got.Reason != "Deployed" {
				t.Errorf("the condition: %+v", got)
			}
			if !metav1.IsControlledBy(deployment, cache) {
				t.Errorf("the Deployment: %+v", deployment.ObjectMeta)
			}
		})
	}
}

var key = client.ObjectKey{Namespace: "default", Name: "cache"}

func newCache() *v1.Cache {
	return &v1.Cache{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: v1.CacheSpec{Replicas: 1}}
}

// newClient returns a client of an API server in memory that has the Cache.
func newClient(t *testing.T) (client.Client, *v1.Cache) {
	t.Helper()
	cache := newCache()
	return ctrlkittest.NewRequest(t, cache, ctrlkittest.WithScheme(exampletest.NewScheme(t, v1.AddToScheme)), ctrlkittest.WithCRDs("config/crd")).Client, cache
}

func reconcileTwice(t *testing.T, c client.Client, r reconcile.Reconciler) *appsv1.Deployment {
	t.Helper()
	for range 2 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	deployment := &appsv1.Deployment{}
	exampletest.Must(t, c.Get(t.Context(), key, deployment))
	return deployment
}

// What the operator has made before it was moved is kept, also the fields that it does not set any
// more.
func TestTheDeploymentIsTakenOver(t *testing.T) {
	c, _ := newClient(t)
	made := reconcileTwice(t, c, &before.CacheReconciler{Client: c, Scheme: c.Scheme()})
	made.Spec.MinReadySeconds = 5 // an older version has set it
	exampletest.Must(t, c.Update(t.Context(), made))
	taken := reconcileTwice(t, c, &after.CacheReconciler{Client: c, Scheme: c.Scheme()})
	if taken.UID != made.UID || taken.Spec.MinReadySeconds != 5 {
		t.Errorf("got %+v", taken)
	}
	if again := reconcileTwice(t, c, &after.CacheReconciler{Client: c, Scheme: c.Scheme()}); again.ResourceVersion != taken.ResourceVersion {
		t.Error("nothing has changed, and the Deployment was written")
	}
}

func TestBefore(t *testing.T) {
	rings.Explore(t, "takes half a minute")
	explore(t, func(mgr ctrl.Manager) error {
		return (&before.CacheReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	}, sim.OracleSameEnd, sim.OracleNoNoopWrites)
}

func TestOneStep(t *testing.T) {
	rings.Explore(t, "takes seconds")
	explore(t, func(mgr ctrl.Manager) error {
		return (&onestep.CacheReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	}, sim.OracleSameEnd)
}

func TestAfter(t *testing.T) {
	rings.Test(t, "takes seconds")
	explore(t, func(mgr ctrl.Manager) error {
		return (&after.CacheReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	})
}

// explore simulates an operator, and compares which oracles have found something.
func explore(t *testing.T, setUp func(ctrl.Manager) error, want ...sim.Oracle) {
	t.Helper()
	options := []sim.Option{sim.WithoutOracle(sim.OracleReadyWhenDone, "as in the sample, Available says that the Deployment exists")}
	if len(want) == 0 {
		options = append(options, sim.WithSample(10))
	}
	report := sim.Explore(t, workload(t, func(mgr ctrl.Manager, _ *sim.Process) error { return setUp(mgr) }), options...)
	if report == nil {
		return
	}
	found := map[sim.Oracle]bool{}
	for _, f := range report.Findings {
		found[f.Violation.Oracle] = true
		if !slices.Contains(want, f.Violation.Oracle) {
			t.Error(f.Text)
		}
	}
	for _, oracle := range want {
		if !found[oracle] {
			t.Errorf("%s has found nothing", oracle)
		}
	}
}

func workload(t *testing.T, setUp func(ctrl.Manager, *sim.Process) error) sim.Workload {
	t.Helper()
	cache := newCache()
	return sim.Workload{
		Scheme: exampletest.NewScheme(t, v1.AddToScheme), CRDs: []string{"config/crd"},
		Operator: sim.Manager(setUp),
		Script: func(w *sim.World) {
			w.Create(cache)
			w.Settle()
			sim.Update(w, cache, func(c *v1.Cache) { c.Spec.Replicas = 3 })
			w.Settle()
			w.Delete(cache)
			w.Settle()
		},
	}
}
