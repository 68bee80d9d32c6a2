// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/rings"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// keeper keeps three Secrets and an external resource for each ConfigMap.
type keeper struct {
	client.Client
	buckets *ExternalClient
}

func (k keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cm := &corev1.ConfigMap{}
	if err := k.Get(ctx, req.NamespacedName, cm); err != nil || strings.HasPrefix(cm.Name, "kube-") {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	const finalizer = "bench.ctrlkit.dev/bucket"
	bucket := "bucket-" + string(cm.UID)
	if !cm.DeletionTimestamp.IsZero() {
		if err := k.buckets.Delete(ctx, bucket); err != nil && !errors.Is(err, ErrNotFound) {
			return ctrl.Result{}, err
		}
		cm.Finalizers = nil
		return ctrl.Result{}, k.Update(ctx, cm)
	}
	if len(cm.Finalizers) == 0 {
		cm.Finalizers = []string{finalizer}
		return ctrl.Result{}, k.Update(ctx, cm)
	}
	if _, err := k.buckets.Get(ctx, bucket); errors.Is(err, ErrNotFound) {
		if _, err := k.buckets.Create(ctx, Creation{Name: bucket, Owner: cm.UID}); err != nil {
			return ctrl.Result{}, err
		}
	} else if err != nil {
		return ctrl.Result{}, err
	}
	for _, name := range []string{"a", "b", "c"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-" + name, Namespace: cm.Namespace}}
		if err := k.Get(ctx, client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if secret.UID != types.UID("") {
			continue
		}
		if err := ctrl.SetControllerReference(cm, secret, k.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := k.Create(ctx, secret); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func keeperWorkload() *Workload {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	return &Workload{
		Externals: []External{{Name: "buckets", Identity: IdentityName}},
		Operator: Manager(func(mgr ctrl.Manager, p *Process) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(keeper{mgr.GetClient(), p.External("buckets")})
		}),
		Script: func(w *World) {
			w.Create(cm)
			w.Settle()
			w.Delete(cm)
			w.Settle()
		},
	}
}

// playedWorkload is the same with a Deployment and its Pods, which are played.
func playedWorkload() *Workload {
	w := keeperWorkload()
	script := w.Script
	w.Script = func(w *World) {
		x := newDeployment()
		w.Create(x)
		w.Settle()
		script(w)
		w.Delete(x)
		w.Settle()
	}
	return w
}

// How many plans one core runs in a second: EXPLORE=1 GOMAXPROCS=1 go test -run PlansPerSecond -v ./sim.
// Nothing is asserted, as machines differ.
func TestPlansPerSecond(t *testing.T) {
	rings.Explore(t, "measures")
	for name, workload := range map[string]*Workload{"alone": keeperWorkload(), "played": playedWorkload()} {
		ref, plans := planned(t, workload)
		collectLess()
		began := time.Now()
		for _, plan := range plans {
			if _, err := runPlan(t, workload, nil, plan, ref, oracleSet{}); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %.0f plans a second", name, float64(len(plans))/time.Since(began).Seconds())
	}
}

// A plan must not depend on the plans that the same process has run before, although servers share
// definitions, namespaces, discovery documents and the results of pure functions.
func TestPlansDoNotDependOnEarlierPlans(t *testing.T) {
	rings.Test(t, "simulates for a while")
	for name, workload := range map[string]*Workload{"alone": keeperWorkload(), "played": playedWorkload()} {
		t.Run(name, func(t *testing.T) {
			ref, plans := planned(t, workload)
			traces := map[int]string{}
			for range 2 {
				for i := 0; i < len(plans); i += 40 {
					result, err := runPlan(t, workload, nil, plans[i], ref, oracleSet{})
					if err != nil {
						t.Fatal(err)
					}
					if text := result.trace.String(); traces[i] == "" {
						traces[i] = text
					} else if traces[i] != text {
						t.Errorf("%s: the second run has another trace:\n%s\nthe first one:\n%s", plans[i], text, traces[i])
					}
				}
			}
		})
	}
}

// planned returns the run without faults of a workload without definitions, and all of its plans.
func planned(t *testing.T, workload *Workload) (*reference, []fault.Plan) {
	t.Helper()
	ref, first, err := findReference(t, workload, nil, newSettings(nil))
	if err != nil {
		t.Fatal(err)
	}
	if ref == nil {
		t.Fatal(first.violations, first.trace)
	}
	return ref, ref.plans(newSettings(nil))
}
