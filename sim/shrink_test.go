// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
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
		plan, o, smaller := found.explorer.shrink(given, shown)
		switch {
		case smaller != (want != ""):
			t.Errorf("%q: shrunk %t to %q", text, smaller, plan)
		case smaller && (plan.String() != want || !violates(o, oracle.ForeignUntouched)):
			t.Errorf("%q became %q with %v, want %q", text, plan, o.Violations, want)
		case !smaller && plan.String() != text:
			t.Errorf("%q became %q, without being smaller", text, plan)
		}
	}
}

// Of eight faults, those stay that are needed, wherever they stand, and not many plans are tried.
func TestShrinkOfASwarm(t *testing.T) {
	plan := mustParse(t, "seed 3; refuse write 1: 500; crash after write 2; refuse write 3: 500; refuse read 1: 500; panic at read 2; fail call 1; fail call 2; drift after call 3")[0]
	for _, needed := range [][]int{{0}, {7}, {0, 7}, {0, 1, 2}, {0, 3, 7}, {2, 4, 5}, {1, 3, 5, 6}, {0, 1, 2, 3, 4, 5, 6, 7}} {
		tried := 0
		shows := func(plans []fault.Plan) (int, outcome, error) {
			tried += len(plans)
			return slices.IndexFunc(plans, func(p fault.Plan) bool {
				return !slices.ContainsFunc(needed, func(i int) bool { return !slices.Contains(p.Faults, plan.Faults[i]) })
			}), outcome{Plan: "some"}, nil
		}
		got, o, smaller := fewer(plan, shows)
		if len(got.Faults) != len(needed) && len(got.Faults) > 2 || smaller != (len(needed) < 8) || smaller != (o.Plan != "") || got.Seed != 3 {
			t.Errorf("%v of the faults are needed, and %q is left", needed, got)
		}
		if i, _, _ := shows([]fault.Plan{got}); i != 0 {
			t.Errorf("%v of the faults are needed, and %q does not have them", needed, got)
		}
		if tried > maxFewer {
			t.Errorf("%d plans were tried to find that %v of the faults are needed", tried, needed)
		}
	}
}

// The plans that are one step simpler have fewer faults, then no order, and then a milder fault that
// is possible at the place and not left out by the user.
func TestSimpler(t *testing.T) {
	e := &explorer{
		places: []fault.Place{
			{Point: fault.AtWrite, At: 3, Write: &fault.Write{Verb: "update", Exists: true, Seen: map[string]int{"jobs.batch": 7}}},
		},
		skipped: map[fault.Kind]string{fault.StopAtWrite: "a reason"},
	}
	tests := map[string][]string{
		"no fault":                        nil,
		"crash after write 3":             nil, // a stop is left out
		"seed 2; crash after write 3":     {"crash after write 3"},
		"seed 1; miss event 2 of secrets": {"miss event 2 of secrets", "seed 1; delay the watch of secrets by 1 from event 2", "seed 1; delay event 2 of secrets"},
		"crash before write 3; fail call 1": {
			"crash before write 3", "fail call 1", "refuse write 3: 500; fail call 1", "crash before write 3; throttle call 1",
		},
		"restart 4 events in the past of jobs.batch after write 3; second leader from write 5": {
			"restart 4 events in the past of jobs.batch after write 3", "second leader from write 5",
			"crash after write 3; second leader from write 5", "restart 4 events in the past of jobs.batch after write 3; crash after write 5",
		},
		"delay the watch of secrets by 5 from event 1": {
			"delay the watch of secrets by 1 from event 1", "delay the watch of secrets by 2 from event 1",
		},
	}
	for text, want := range tests {
		if diff := cmp.Diff(want, texts(e.simpler(mustParse(t, text)[0]))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	rare := e.simpler(mustParse(t, "restart 4 events in the past of jobs.batch after write 3")[0])
	if got := texts(rare); !slices.Contains(got, "delay the watch of jobs.batch by 1 from event 8") {
		t.Errorf("what the operator has seen at the write is not what is delayed: %q", got)
	}
}

// Two violations are the same if they are of the same kind, or if what differs first in the one
// differs in the other, too.
func TestShows(t *testing.T) {
	difference := func(paths ...string) oracle.Violation {
		v := oracle.Violation{Oracle: oracle.SameEnd}
		for _, path := range paths {
			v.Differences = append(v.Differences, oracle.Difference{Thing: "secrets a/b", Path: path})
		}
		return v
	}
	text := func(name oracle.Name, text string) oracle.Violation {
		return oracle.Violation{Oracle: name, Text: text}
	}
	tests := []struct {
		v, other oracle.Violation
		want     bool
	}{
		{text(oracle.NoLeak, "3 Pods"), text(oracle.NoLeak, "5 Pods"), true},
		{text(oracle.NoLeak, "a Pod"), text(oracle.NoLeak, "a Job"), false},
		{text(oracle.NoLeak, "a Pod"), text(oracle.SameWork, "a Pod"), false},
		{difference(".a", ".b"), difference(".b"), true},
		{difference(".b"), difference(".a", ".b"), false},
		{difference(".a"), difference(".b"), false},
	}
	for _, test := range tests {
		o := outcome{Violations: []oracle.Violation{test.v}}
		finding := report.Finding{Key: report.Key(test.other, nil), Oracle: test.other.Oracle}
		finding.Example.Differences = test.other.Differences
		if got := shows(o, finding) >= 0; got != test.want {
			t.Errorf("%v and %v: got %t, want %t", test.v, test.other, got, test.want)
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
	sim.explorer.places = ref.places
	for text, want := range map[string]string{
		"restart 4 events in the past of secrets after write 1": "delay the watch of secrets by 1 from event 1",
		"delay the watch of secrets by 3 from event 1":          "delay the watch of secrets by 1 from event 1",
		"miss event 1 of secrets":                               "delay the watch of secrets by 1 from event 1",
	} {
		given := mustParse(t, text)
		outcomes, err := sim.explorer.run(given)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(outcomes[0].Violations, func(v oracle.Violation) bool { return v.Oracle == oracle.SameWork })
		if i < 0 {
			t.Errorf("%q violates only %v", text, outcomes[0].Violations)
			continue
		}
		v := outcomes[0].Violations[i]
		plan, o, simpler := sim.explorer.shrink(given[0], report.Finding{Key: report.Key(v, outcomes[0].write(i)), Oracle: v.Oracle})
		if !simpler || plan.String() != want || !violates(o, oracle.SameWork) {
			t.Errorf("%q became %q with %v, want %q", text, plan, o.Violations, want)
		}
	}
}
