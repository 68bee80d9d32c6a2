// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A Report is what an exploration has done and found.
type Report struct {
	Plans    []Plan    // that were run, besides the one without faults
	Findings []Finding // all kinds, the worst first

	simulation report.Simulation
	workload   *Workload
	crds       []*apiextensionsv1.CustomResourceDefinition
	settings   *settings
	workers    *simulated
	explorer   *explore.Explorer
	deadline   func() (time.Time, bool) // of the test
}

// A Finding is one way in which an oracle did not hold.
type Finding struct {
	Plan      Plan // that explains it best: the one with the fewest faults
	Violation Violation
	Class     oracle.Class
	Plans     int    // how many plans showed it
	Write     *Write // the write or call that is most likely wrong; nil where that is not known
	Remedy    string // what to do about it; empty where that depends on the operator
	Text      string // as a person reads it, with what happened
	Again     string // the line that runs the plan again

	// Key identifies the kind of the finding. CoveredBy is the key of a worse finding that most likely
	// has the same cause, and precedes this one; it is empty for the worst finding of each cause.
	Key, CoveredBy string
}

// explore runs the workload without faults, and then all plans.
func (r *Report) explore(t *testing.T) {
	t.Helper()
	started := time.Now()
	defer func() { r.simulation.Seconds = time.Since(started).Round(time.Millisecond).Seconds() }()
	ref, first, err := findReference(t, r.workload, r.crds, r.settings)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	var list []report.Outcome
	r.simulation.Needs = first.needs
	without := explore.Outcome{Plan: first.plan.String(), Trace: first.trace.String(), Violations: first.violations, Writes: first.writes, Logs: first.trace.Logs()}
	r.simulation.SetWithout(without.Trace)
	if len(without.Violations) > 0 && r.settings.Shard.First() {
		list = append(list, r.explorer.Report(explore.Ran{Order: explore.OrderOfReference, Plan: first.plan, Outcome: without}))
	}
	if ref == nil || without.Violates(r.settings.until...) {
		r.fill(list)
		return
	}
	r.simulation.UnusedRules, r.simulation.UncheckedRules = ref.rules(r.workload)
	r.simulation.Needs = ref.needs
	defer r.checkDefinitions(t)()
	if os.Getenv(FaultsVariable) == withoutFaults {
		r.fill(list)
		return
	}
	r.explorer.Places = ref.places
	all, err := r.plans(t, ref)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	for _, ran := range r.run(t, all) {
		if ran.Err != "" {
			t.Errorf("plan %q: %s", ran.Outcome.Plan, ran.Err)
		}
		r.settings.note(ran.Meant)
		if len(ran.Needs) > 0 {
			r.simulation.Needs = permission.Merge(r.simulation.Needs, ran.Needs)
		}
		r.Plans = append(r.Plans, ran.Plan)
		list = append(list, r.explorer.Report(ran))
	}
	r.simulation.Off = append(r.simulation.Off, r.settings.byDesign()...)
	r.fill(list)
}

// checkDefinitions begins to check the definitions, of which runs check only those that they use:
// this process has nothing else to do while the plans run. The function that it returns fails the
// test with what is wrong.
func (r *Report) checkDefinitions(t testing.TB) (end func()) {
	t.Helper()
	checked := make(chan error, 1)
	go func() { checked <- prepared(r.crds).Check() }()
	return func() {
		if err := <-checked; err != nil {
			t.Errorf("sim: Workload.CRDs: %v", err)
		}
	}
}

// fill fills in the outcomes of plans, and adds the findings to those of the report.
func (r *Report) fill(list []report.Outcome) {
	r.add(append(list, r.explorer.Fill(context.Background(), &r.simulation, list)...))
}

// run runs those of the plans that are chosen until all have run, the time of the test is over, or
// the user interrupts it. The second interrupt ends the process.
func (r *Report) run(t *testing.T, all []fault.Plan) []explore.Ran {
	t.Helper()
	deadline, _ := r.deadline()
	stop, rest, now := explore.NewStopper(deadline), explore.NewStopper(deadline), time.Now()
	stop.Spend(r.explorer.Budget, now.Add(-explore.Margin(r.explorer.Budget.Time)))
	rest.Spend(r.explorer.Budget, now)
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt)
	defer end()
	context.AfterFunc(ctx, end)
	r.explorer.Stop, r.explorer.Rest, r.explorer.Found = stop, rest, newFound(t.Name())
	r.workers.join(!r.settings.whole)
	ran, err := r.explorer.Explore(ctx, all, &r.simulation)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	r.workers.join(false)
	return ran
}

// add adds the findings of the simulation to those of the report. The outcomes have the violations
// of their examples.
func (r *Report) add(outcomes []report.Outcome) {
	violations := map[string]map[string]oracle.Violation{} // by plan and key
	plans := map[string]fault.Plan{}
	for _, o := range outcomes {
		text := o.Plan.String()
		plans[text] = o.Plan
		for i, v := range o.Violations {
			var w *report.Write
			if i < len(o.Writes) {
				w = o.Writes[i]
			}
			if violations[text] == nil {
				violations[text] = map[string]oracle.Violation{}
			}
			if _, ok := violations[text][report.Key(v, w)]; !ok {
				violations[text][report.Key(v, w)] = v
			}
		}
	}
	for _, f := range r.simulation.Findings {
		v := violations[f.Example.Text][f.Key]
		r.Findings = append(r.Findings, Finding{
			Plan: plans[f.Example.Text], Violation: v, Class: v.Class(), Plans: len(f.Plans), Write: f.Example.Write, Remedy: f.Remedy,
			Text: r.simulation.InFull(f, report.Style{}), Again: f.Example.Again, Key: f.Key, CoveredBy: f.CoveredBy,
		})
	}
}

// Violated returns the oracles that did not hold in a plan, ordered by name.
func (r *Report) Violated(plan Plan) []Oracle {
	var names []oracle.Name
	for _, f := range r.simulation.Findings {
		if slices.ContainsFunc(f.Plans, func(p report.Plan) bool { return p.Text == plan.String() }) {
			names = append(names, f.Oracle)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Repeat runs a plan again, several times, and returns what each run violated.
func (r *Report) Repeat(t *testing.T, plan Plan, times int) [][]Violation {
	t.Helper()
	plans := make([]fault.Plan, times)
	for i := range plans {
		plans[i] = plan
	}
	all := *r.explorer
	all.Until, all.Found, all.Stop = nil, nil, nil // all runs are wanted, above all those that violate something
	outcomes, err := all.Run(t.Context(), plans)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	list := make([][]oracle.Violation, times)
	for i, o := range outcomes {
		list[i] = o.Violations
	}
	return list
}

// print fails the test with the findings, and logs what was done.
func (r *Report) print(t testing.TB) {
	t.Helper()
	s := &r.simulation
	if len(s.Findings) > 1 {
		t.Errorf("%s", s.Overview(report.Style{}))
	}
	for i, f := range s.Worst() {
		if i == report.DefaultFull {
			t.Errorf("%d more findings are listed above: -sim.plan='...' shows what happened in one of their plans", len(s.Worst())-i)
			break
		}
		t.Errorf("%s\n\nagain: %s", s.InFull(f, report.Style{}), f.Example.Again)
	}
	if s.Stopped == report.TimeLimit || s.Stopped == report.Interrupted {
		t.Errorf("%s", s.Incomplete())
	}
	text := s.Summary()
	switch {
	case len(r.Plans) == 0 && len(s.Findings) == 0:
		return
	case len(r.Plans) == 0:
		text += "\n  no fault was tried: the run without faults has to pass first"
	}
	elapsed := time.Duration(s.Seconds * float64(time.Second)).Round(time.Millisecond)
	if flags := profileOf(); flags != nil {
		profile, _, _ := strings.Cut(strings.TrimPrefix(flags[0], "-test.cpuprofile="), ".worker-")
		text += fmt.Sprintf("\n  each worker has a profile: go tool pprof %[1]s %[1]s.worker-*", profile)
	}
	t.Logf("%s; %s", text, elapsed)
	reportProgress(message{Test: t.Name(), Done: s.Plans.Run, Total: s.Plans.Total, Bad: len(s.Worst()), Summary: text, Elapsed: elapsed})
}

// off lists what the test has switched off or declared.
func (s *settings) off() []report.Off {
	var list []report.Off
	for _, name := range slices.Sorted(maps.Keys(s.without)) {
		list = append(list, report.Off{Oracle: name, Reason: s.without[name]})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.skipped)) {
		list = append(list, report.Off{Fault: kind.Plain("any"), Reason: s.skipped[kind]})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.rules.Keeps)) {
		list = append(list, report.Off{Declared: "keeps " + kind, Reason: s.rules.Keeps[kind]})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.rules.Unwatched)) {
		list = append(list, report.Off{Declared: "reads " + kind + " without a watch", Reason: s.rules.Unwatched[kind]})
	}
	if reason := s.rules.Network; reason != "" {
		list = append(list, report.Off{Declared: "uses the real network", Reason: reason})
	}
	return list
}

// byDesign lists what the test has declared to be meant.
func (s *settings) byDesign() []report.Off {
	var list []report.Off
	for _, m := range s.meant {
		what := fmt.Sprintf("violates %q by design, in %d plans", m.expression, m.plans)
		if m.plans == 0 {
			what = fmt.Sprintf("violates %q by design, which nothing does", m.expression)
		}
		list = append(list, report.Off{Declared: what, Reason: m.reason})
	}
	return list
}

// runOne runs the plan that was asked for, in this process, and prints all of it.
func (r *Report) runOne(t *testing.T) {
	t.Helper()
	plan, err := fault.ParsePlan(*planFlag)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	remark(t, "running the workload without faults, for the comparison")
	ref, result, err := findReference(t, r.workload, r.crds, r.settings)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	if ref == nil {
		remark(t, "the run without faults does not work, so the plan is not run")
	} else {
		remark(t, "running the plan "+plan.String())
		if result, err = runPlan(t, r.workload, r.crds, plan, ref, r.settings.silent()); err != nil {
			t.Fatalf("sim: %v", err)
		}
	}
	text := fmt.Sprintf("%s\n%s\nlog of the operator:\n%s", result.plan, result.trace, strings.Join(result.trace.Logs(), "\n"))
	t.Log(text)
	result.violations, result.writes, _ = r.settings.split(plan, result.violations, result.writes)
	for i, fired := range result.fired {
		if !fired {
			t.Errorf("the run never came to the place of %q", plan.Faults[i])
		}
	}
	for i, v := range result.violations {
		if w := result.writes[i]; w != nil {
			t.Errorf("%s\n\n%s", v, w)
		} else {
			t.Errorf("%s", v)
		}
	}
}
