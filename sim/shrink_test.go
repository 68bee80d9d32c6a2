// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A plan with more than the violation needs is reduced to what it needs.
func TestShrink(t *testing.T) {
	rings.Test(t, "simulates for a while")
	found := Explore(t, copyWorkload(), WithStopOn(oracle.ForeignUntouched))
	if found == nil {
		return // this is a worker
	}
	i := slices.IndexFunc(found.Findings, func(f Finding) bool { return f.Violation.Oracle == oracle.ForeignUntouched })
	if i < 0 {
		t.Fatal("the operator overwrites what belongs to others, and it was not found")
	}
	shown := report.Finding{Key: found.Findings[i].Key, Oracle: oracle.ForeignUntouched}
	for text, want := range map[string]string{
		"seed 2; occupy the name before write 1":              "occupy the name before write 1",
		"crash after write 2; occupy the name before write 1": "occupy the name before write 1",
		"occupy the name before write 1":                      "",
		"seed 2; crash after write 1; crash after write 2":    "",
	} {
		given := mustParse(t, text)[0]
		plan, o, smaller := found.explorer.Shrink(t.Context(), given, shown)
		switch {
		case smaller != (want != ""):
			t.Errorf("%q: shrunk %t to %q", text, smaller, plan)
		case smaller && (plan.String() != want || !o.Violates(oracle.ForeignUntouched)):
			t.Errorf("%q became %q with %v, want %q", text, plan, o.Violations, want)
		case !smaller && plan.String() != text:
			t.Errorf("%q became %q, without being smaller", text, plan)
		}
	}
}

// generator keeps one Secret with a generated name for each ConfigMap, and notes in an annotation
// that it has: its own note makes it reconcile again, with a cache that may lack the Secret.
type generator struct{ client.Client }

func (g generator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cm corev1.ConfigMap
	if err := g.Get(ctx, req.NamespacedName, &cm); err != nil || cm.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var list corev1.SecretList
	if err := g.List(ctx, &list, client.InNamespace(cm.Namespace)); err != nil || len(list.Items) > 0 {
		return ctrl.Result{}, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, GenerateName: cm.Name + "-"}}
	if err := ctrl.SetControllerReference(&cm, secret, g.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := g.Create(ctx, secret); err != nil {
		return ctrl.Result{}, err
	}
	if cm.Annotations["noted"] == "yes" {
		return ctrl.Result{}, nil
	}
	cm.Annotations = map[string]string{"noted": "yes"}
	return ctrl.Result{}, g.Update(ctx, &cm)
}

// A mistake that a lagging cache is enough for is not shown with a first list that is stale, nor
// with a lost event.
func TestShrinkTriesMilderFaults(t *testing.T) {
	rings.Test(t, "simulates for a while")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	w := Workload{
		Operator: Manager(func(mgr ctrl.Manager, _ *Process) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(generator{mgr.GetClient()})
		}),
		Script: func(w *World) {
			w.Create(cm)
			w.Settle()
		},
	}
	sim := prepare(t, w, nil, ".")
	if sim == nil {
		return // this is a worker
	}
	ref, _, err := findReference(t, sim.workload, sim.crds, sim.settings)
	if err != nil || ref == nil {
		t.Fatalf("no reference: %v", err)
	}
	sim.explorer.Places = ref.places
	for text, want := range map[string]string{
		"restart 4 events in the past of secrets after write 1": "delay the watch of secrets by 1 from event 1",
		"delay the watch of secrets by 3 from event 1":          "delay the watch of secrets by 1 from event 1",
		"miss event 1 of secrets":                               "delay the watch of secrets by 1 from event 1",
	} {
		given := mustParse(t, text)
		outcomes, err := sim.explorer.Run(t.Context(), given)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(outcomes[0].Violations, func(v oracle.Violation) bool { return v.Oracle == oracle.SameWork })
		if i < 0 {
			t.Errorf("%q violates only %v", text, outcomes[0].Violations)
			continue
		}
		v := outcomes[0].Violations[i]
		plan, o, simpler := sim.explorer.Shrink(t.Context(), given[0], report.Finding{Key: report.Key(v, outcomes[0].Writes[i]), Oracle: v.Oracle})
		if !simpler || plan.String() != want || !o.Violates(oracle.SameWork) {
			t.Errorf("%q became %q with %v, want %q", text, plan, o.Violations, want)
		}
	}
}
