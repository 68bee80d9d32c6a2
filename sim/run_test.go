// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var repetitions = flag.Int("repetitions", 20, "compare so many `runs` of a plan with each other")

// copier keeps a Secret with the data of each ConfigMap that is labelled so.
type copier struct{ client.Client }

func (c copier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, req.NamespacedName, cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cm.Labels["copy"] != "yes" {
		return ctrl.Result{}, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-copy", Namespace: cm.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, secret, func() error {
		secret.Data = map[string][]byte{}
		for k, v := range cm.Data {
			secret.Data[k] = []byte(v)
		}
		return controllerutil.SetControllerReference(cm, secret, c.Scheme())
	})
	return ctrl.Result{}, err
}

func copyWorkload() Workload {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default", Labels: map[string]string{"copy": "yes"}}, Data: map[string]string{"a": "1"}}
	return Workload{
		Operator: Manager(func(mgr ctrl.Manager, p *Process) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(copier{mgr.GetClient()})
		}),
		Script: func(w *World) {
			w.Create(cm)
			w.Settle()
			Update(w, cm, func(cm *corev1.ConfigMap) { cm.Data["a"] = "2" })
			w.Settle()
			w.Delete(cm)
			w.Settle()
		},
	}
}

// The pattern that most operators begin with takes over objects of others, and that is all that is
// wrong with it.
func TestCreateOrUpdateTakesOver(t *testing.T) {
	rings.Test(t, "simulates for a while")
	report := Explore(t, copyWorkload(), WithPairs(100), WithSample(30))
	if report == nil {
		return
	}
	if len(report.Findings) != 1 || report.Findings[0].Violation.Oracle != oracle.ForeignUntouched {
		for _, f := range report.Findings {
			t.Log(f.Text)
		}
		t.Fatalf("%d findings, want one of %s", len(report.Findings), oracle.ForeignUntouched)
	}
	if got, want := report.Findings[0].Plan.String(), "occupy the name before write 1"; got != want {
		t.Errorf("found with %q, want %q", got, want)
	}
}

// An operator that has the API server refuse to take over an object of others does not touch it.
func TestARefusedTakeoverIsNone(t *testing.T) {
	rings.Test(t, "simulates for a while")
	reconciler := func(c client.Client) reconcile.Func {
		return func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			var cm corev1.ConfigMap
			if err := c.Get(ctx, req.NamespacedName, &cm); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			var secret corev1.Secret
			err := c.Get(ctx, req.NamespacedName, &secret)
			switch {
			case err == nil && !metav1.IsControlledBy(&secret, &cm):
				return ctrl.Result{RequeueAfter: time.Minute}, nil // until it is gone
			case client.IgnoreNotFound(err) != nil:
				return ctrl.Result{}, err
			}
			owner := metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName(cm.Name).WithUID(cm.UID).WithController(true)
			applied := corev1ac.Secret(req.Name, req.Namespace).WithOwnerReferences(owner).WithData(map[string][]byte{"a": []byte(cm.Data["a"])})
			if err != nil {
				applied.WithResourceVersion("1") // no object has it
			} else if string(secret.Data["a"]) == cm.Data["a"] {
				return ctrl.Result{}, nil
			}
			return ctrl.Result{}, c.Apply(ctx, applied, client.FieldOwner("me"))
		}
	}
	workload := copyWorkload()
	workload.Operator = Manager(func(mgr ctrl.Manager, _ *Process) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconciler(mgr.GetClient()))
	})
	report := Explore(t, workload, WithSample(30))
	if report == nil {
		return
	}
	for _, f := range report.Findings {
		if f.Violation.Oracle == oracle.ForeignUntouched {
			t.Error(f.Text)
		}
	}
}

// Equal plans have equal traces, whatever the scheduler does.
func TestEqualPlansHaveEqualTraces(t *testing.T) {
	rings.Test(t, "simulates for a while")
	workload := copyWorkload()
	for _, text := range []string{"no fault", "seed 3", "crash after write 1", "seed 2; expire the watch of secrets after event 1; refuse write 2: 409"} {
		want := play(t, workload, text).trace.String()
		for range *repetitions - 1 {
			if diff := cmp.Diff(want, play(t, workload, text).trace.String()); diff != "" {
				t.Fatalf("%s: %s", text, diff)
			}
		}
	}
}

// An operator that does not return after its context was canceled is accused, and the run ends.
func TestAnOperatorThatStays(t *testing.T) {
	r := play(t, Workload{
		Operator: func(ctx context.Context, _ *Process) error {
			<-ctx.Done()
			time.Sleep(10 * time.Minute)
			return nil
		},
		Script: func(*World) {},
	}, "")
	if !slices.ContainsFunc(r.violations, func(v oracle.Violation) bool { return v.Oracle == oracle.NoGoroutineLeft }) {
		t.Errorf("got %v\n%s", r.violations, r.trace)
	}
}

// A script that fails before the caches of the operator have synced ends the run at once: a manager
// whose context is canceled then spins.
func TestAScriptThatFailsAtOnce(t *testing.T) {
	for name, first := range map[string]*corev1.ConfigMap{
		"what is wrong": {ObjectMeta: metav1.ObjectMeta{Name: "No_Name", Namespace: "default"}},
		"what is right": {ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}},
	} {
		workload := Workload{
			Operator: Manager(func(mgr ctrl.Manager, _ *Process) error {
				return mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.ConfigMap{}, "x", func(client.Object) []string { return nil })
			}),
			Script: func(w *World) { w.Create(first) },
		}
		result := play(t, workload, "")
		wrong := len(result.violations) == 1 && result.violations[0].Oracle == oracle.ScriptRuns
		if wrong != (first.Name == "No_Name") || len(result.violations) > 1 {
			t.Errorf("%s is created: %v\n%s", name, result.violations, result.trace)
		}
	}
}
