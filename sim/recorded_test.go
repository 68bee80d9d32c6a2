// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

const recordedFinalizer = "example.com/cleanup"

// stuckRecording is a ConfigMap that was deleted an hour before, whose cleanup needs a Secret that
// is gone.
func stuckRecording() *recording.Recording {
	recorded := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	at := metav1.NewTime(recorded.Add(-time.Hour))
	seconds := int64(0)
	app := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "app", Namespace: "shop", UID: "5e1ec7ed-0000-4000-8000-000000000001", ResourceVersion: "4000123", CreationTimestamp: at,
			DeletionTimestamp: &at, DeletionGracePeriodSeconds: &seconds, Finalizers: []string{recordedFinalizer},
		},
	}
	child := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "app-child", Namespace: "shop", UID: "5e1ec7ed-0000-4000-8000-000000000002", ResourceVersion: "4000122", CreationTimestamp: at,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "app", UID: app.UID, Controller: new(bool)}},
		},
	}
	r := &recording.Recording{Head: recording.Head{Recorded: recorded}}
	for _, obj := range []client.Object{app, child} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			panic(err)
		}
		r.Objects = append(r.Objects, &unstructured.Unstructured{Object: content})
	}
	r.Subjects = []recording.Subject{recording.SubjectOf(r.Objects[0])}
	return r
}

// cleans returns an operator that cleans up after ConfigMaps with a finalizer. seen is called with
// each.
func cleans(wrong bool, seen func(*corev1.ConfigMap)) func(context.Context, *Process) error {
	return Manager(func(mgr ctrl.Manager, _ *Process) error {
		c := mgr.GetClient()
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconcile.Func(
			func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				obj := &corev1.ConfigMap{}
				if err := c.Get(ctx, req.NamespacedName, obj); err != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				seen(obj)
				if obj.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(obj, recordedFinalizer) {
					return ctrl.Result{}, nil
				}
				err := c.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: obj.Name}, &corev1.Secret{})
				if client.IgnoreNotFound(err) != nil || err != nil && wrong {
					return ctrl.Result{}, err
				}
				controllerutil.RemoveFinalizer(obj, recordedFinalizer)
				return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, obj))
			}))
	})
}

func recordedTwins(wrong bool) Workload {
	r := stuckRecording()
	r.At(beginning)
	return Workload{recorded: r, Operator: cleans(wrong, func(*corev1.ConfigMap) {}), Script: func(w *World) { w.Settle() }}
}

// The test of a recorded failure fails with the operator that has it, without a fault, and passes
// with the mended one, with all faults. Both find the objects as they were recorded.
func TestFrom(t *testing.T) {
	rings.Test(t, "simulates all plans")
	file := filepath.Join(t.TempDir(), "stuck.yaml")
	if worker := os.Getenv("CTRLKIT_TEST_RECORDING"); worker != "" {
		file = worker
	} else {
		var b strings.Builder
		if err := stuckRecording().Write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("CTRLKIT_TEST_RECORDING", file)
	}
	seen := func(obj *corev1.ConfigMap) {
		if obj.Name != "app" || obj.DeletionTimestamp == nil {
			return
		}
		if got := time.Since(obj.DeletionTimestamp.Time); got < time.Hour || obj.UID != "5e1ec7ed-0000-4000-8000-000000000001" {
			panic("it was deleted " + got.String() + " ago, and has the UID " + string(obj.UID))
		}
	}
	wrong := Explore(t, Workload{Name: "wrong", Operator: cleans(true, seen)}, From(file))
	right := Explore(t, Workload{Name: "right", Operator: cleans(false, seen)}, From(file))
	if wrong == nil || right == nil {
		return // a worker, or a plan is run again
	}
	want := "ConfigMap shop/app ends as it was recorded: being deleted, held by " + recordedFinalizer
	found := ""
	for _, f := range wrong.Findings {
		if f.Violation.Oracle == oracle.Mended {
			found = f.Violation.Text
		}
	}
	if found != want || len(wrong.Plans) > 0 {
		t.Errorf("the wrong operator: got %q, want %q, and %d plans", found, want, len(wrong.Plans))
	}
	if len(right.Findings) > 0 || len(right.Plans) < 10 {
		t.Errorf("the mended operator: %d plans, and these findings: %v", len(right.Plans), right.Findings)
	}
}

// The children of an object that goes go with it, and what happens is about the recorded objects
// alone.
func TestRecordedObjects(t *testing.T) {
	w := recordedTwins(false)
	w.Script = func(w *World) {
		w.Settle()
		for _, o := range w.run.cluster.Server.Objects() {
			if o.Resource.Resource == "configmaps" {
				t.Errorf("%s/%s is still there", o.Namespace, o.Name)
			}
		}
	}
	result, err := runPlan(t, &w, nil, mustParse(t, "")[0], nil, oracleSet{})
	if err != nil || len(result.violations) > 0 {
		t.Errorf("%v %v\n%s", err, result.violations, result.trace)
	}
	if uid := w.recorded.Objects[0].GetUID(); uid != "5e1ec7ed-0000-4000-8000-000000000001" {
		t.Errorf("the recording was changed: %s", uid)
	}
}

// A kind that is not defined ends the run with what to do about it.
func TestRecordedKindIsUnknown(t *testing.T) {
	w := recordedTwins(false)
	w.recorded.Objects[1].SetAPIVersion("example.com/v1")
	result, err := runPlan(t, &w, nil, mustParse(t, "")[0], nil, oracleSet{})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.violations) != 1 || !strings.Contains(result.violations[0].Text, "add its definition to Workload.CRDs") {
		t.Errorf("got %v", result.violations)
	}
}
