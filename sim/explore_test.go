// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1 "k8s.io/api/core/v1"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// placesOfARun are those of a run with two reads and a checkpoint.
func placesOfARun() *reference {
	return &reference{places: []fault.Place{
		{Point: fault.AtRead, At: 1}, {Point: fault.AtRead, At: 2}, {Point: fault.WhenIdle, At: 1},
	}}
}

func texts(plans []fault.Plan) []string {
	var list []string
	for _, plan := range plans {
		list = append(list, plan.String())
	}
	return list
}

// The plans are the run without faults in other orders, and each fault that can strike, in the
// order of the run.
func TestPlans(t *testing.T) {
	want := []string{
		"seed 1", "seed 2", "seed 3",
		"panic at read 1", "refuse read 1: 429", "refuse read 1: 403", "refuse read 1: 500", "refuse read 1: timeout",
		"panic at read 2", "refuse read 2: 429", "refuse read 2: 403", "refuse read 2: 500", "refuse read 2: timeout",
		"resync and restart at checkpoint 1",
	}
	if diff := cmp.Diff(want, texts(placesOfARun().plans(newSettings(nil)))); diff != "" {
		t.Error(diff)
	}
	want = slices.DeleteFunc(want, func(text string) bool { return strings.HasPrefix(text, "refuse") })
	without := newSettings([]Option{WithoutFault(fault.RefuseRead, "a reason"), WithPairs(3)})
	plans := placesOfARun().plans(without)
	if diff := cmp.Diff(want, texts(plans[:len(want)])); diff != "" {
		t.Errorf("without a kind of faults:\n%s", diff)
	}
	for _, plan := range plans {
		if plan.Has(fault.RefuseRead) {
			t.Errorf("%q has a fault that was left out", plan)
		}
	}
}

// Lists of the past are tried only where a test asks for them: informers that stream have none.
func TestStaleListsAreOptIn(t *testing.T) {
	r := &reference{places: []fault.Place{{Point: fault.AtWrite, At: 1, Write: &fault.Write{Verb: "update"}, Watched: []string{"secrets"}}}}
	stale := func(options ...Option) bool {
		return slices.ContainsFunc(r.plans(newSettings(options)), func(p fault.Plan) bool { return p.Has(fault.RestartInPast) })
	}
	if stale() || !stale(WithStaleLists()) {
		t.Errorf("lists of the past: %t, and %t with WithStaleLists", stale(), stale(WithStaleLists()))
	}
}

// Pairs come after the single faults. A seed chooses them, and each only once; there are no more
// than there can be.
func TestPairs(t *testing.T) {
	singles := len(placesOfARun().plans(newSettings(nil)))
	pairs := func(options ...Option) []fault.Plan {
		return placesOfARun().plans(newSettings(options))[singles:]
	}
	ten := pairs(WithPairs(10))
	seen := map[string]bool{}
	for _, plan := range ten {
		seen[plan.String()] = true
		if len(plan.Faults) != 2 || plan.Faults[0] == plan.Faults[1] || plan.Seed >= (learningRuns+1) {
			t.Errorf("a pair is %q", plan)
		}
	}
	if len(ten) != 10 || len(seen) != 10 {
		t.Errorf("%d pairs, of which %d differ, want 10", len(ten), len(seen))
	}
	if diff := cmp.Diff(texts(ten), texts(pairs(WithPairs(10), WithSeed(0)))); diff != "" {
		t.Errorf("the same seed has other pairs:\n%s", diff)
	}
	if cmp.Equal(texts(ten), texts(pairs(WithPairs(10), WithSeed(7)))) {
		t.Error("another seed has the same pairs")
	}
	one := &reference{places: []fault.Place{{Point: fault.WhenIdle, At: 1}}}
	if plans := one.plans(newSettings([]Option{WithPairs(10)})); len(plans) != learningRuns+1 {
		t.Errorf("a single fault has pairs: %q", texts(plans))
	}
	two := &reference{places: []fault.Place{{Point: fault.WhenIdle, At: 1}, {Point: fault.WhenIdle, At: 2}}}
	if plans := two.plans(newSettings([]Option{WithPairs(1000)})); len(plans) != learningRuns+2+2*(learningRuns+1) {
		t.Errorf("two faults have %d plans: %q", len(plans), texts(plans))
	}
}

func TestOptions(t *testing.T) {
	s := newSettings([]Option{
		WithPairs(3), WithSeed(4), WithStopOn(oracle.SameEnd, oracle.NoLeak), WithoutOracle(oracle.SameWork, "a"), WithoutFault(fault.Drift, "b"),
		ComesAndGoes("A", "B"), Keeps("persistentvolumeclaims", "c"), Unwatched("nodes", "d"),
	})
	want := &settings{
		Choice: explore.Choice{Orders: learningRuns + 1, Pairs: 3, Seed: 4}, until: []oracle.Name{oracle.SameEnd, oracle.NoLeak},
		without: oracleSet{oracle.SameWork: "a"}, skipped: map[fault.Kind]string{fault.Drift: "b"},
		rules: judge.Rules{ComesAndGoes: map[string]bool{"A": true, "B": true}, Keeps: map[string]string{"persistentvolumeclaims": "c"}, Unwatched: map[string]string{"nodes": "d"}},
	}
	if diff := cmp.Diff(want, s, cmp.AllowUnexported(settings{}, explore.Shard{}, explore.Budget{})); diff != "" {
		t.Error(diff)
	}
	off := []report.Off{
		{Oracle: oracle.SameWork, Reason: "a"}, {Fault: fault.Drift.Plain("any"), Reason: "b"}, {Declared: "keeps persistentvolumeclaims", Reason: "c"},
		{Declared: "reads nodes without a watch", Reason: "d"},
	}
	if diff := cmp.Diff(off, s.off()); diff != "" {
		t.Error(diff)
	}
}

// An operator that dies of a plan in a goroutine of its own costs that plan, and the next one runs
// in a new process.
func TestAnOperatorThatDies(t *testing.T) {
	rings.Test(t, "simulates for a while")
	w := copyWorkload()
	w.Operator = Manager(func(mgr ctrl.Manager, _ *Process) error {
		right := copier{mgr.GetClient()}
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconcile.Func(
			func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				result, err := right.Reconcile(ctx, req)
				if client.IgnoreNotFound(err) != nil {
					dead := make(chan struct{})
					go func() { panic("no one recovers this") }()
					<-dead
				}
				return result, err
			}))
	})
	report := prepare(t, w, nil, ".")
	if report == nil {
		return // this is a worker
	}
	plans := mustParse(t, "refuse write 1: 500", "no fault")
	outcomes, err := report.explorer.Run(t.Context(), plans)
	if err != nil {
		t.Fatal(err)
	}
	died := outcomes[0].Violations
	if len(died) != 1 || died[0].Oracle != oracle.NoPanic || !strings.HasPrefix(died[0].Text, "the process of the operator ended: exit status 2\npanic: no one recovers this") {
		t.Errorf("got %v", died)
	}
	if o := outcomes[1]; o.Err != "" || len(o.Violations) > 0 || o.Requests == 0 {
		t.Errorf("the next plan: %+v", o)
	}
	for i, violations := range report.Repeat(t, plans[1], 2) {
		if len(violations) > 0 {
			t.Errorf("run %d: %v", i, violations)
		}
	}
}

// With WithStopOn, plans after the one that has violated the oracle are not run.
func TestStopOn(t *testing.T) {
	rings.Test(t, "simulates for a while")
	report := prepare(t, copyWorkload(), []Option{WithStopOn(oracle.ForeignUntouched)}, ".")
	if report == nil {
		return // this is a worker
	}
	outcomes, err := report.explorer.Run(t.Context(), mustParse(t, "no fault", "occupy the name before write 1", "no fault"))
	if err != nil {
		t.Fatal(err)
	}
	if outcomes[0].Plan == "" || !outcomes[1].Violates(oracle.ForeignUntouched) || outcomes[2].Plan != "" {
		t.Errorf("got %+v", outcomes)
	}
}

// A workload that is wrong without a fault is reported as it is, and no plans are run.
func TestWrongWithoutAFault(t *testing.T) {
	rings.Test(t, "simulates for a while")
	report := Explore(t, Workload{Operator: idleOperator, Script: func(*World) { panic("oh") }})
	if report == nil {
		return
	}
	if len(report.Plans) > 0 || len(report.Findings) != 1 || report.Findings[0].Violation.Oracle != oracle.ScriptRuns {
		t.Errorf("got %d plans and %v", len(report.Plans), report.Findings)
	}
	if f := report.Findings[0]; !strings.HasSuffix(f.Again, "-run '^TestWrongWithoutAFault$' -sim.plan='no fault'") || !strings.HasPrefix(f.Text, "stuck: panic: oh (script-runs)\n") {
		t.Errorf("got %q, again with %q", f.Text, f.Again)
	}
}
