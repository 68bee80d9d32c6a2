// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
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
	again      *repeat
	explorer   *explorer
	shard      shard
	sites      sites
	budget     budget
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
	without := outcome{Plan: first.plan.String(), Trace: first.trace.String(), Violations: first.violations, Writes: first.writes, Logs: first.trace.Logs()}
	r.simulation.SetWithout(without.Trace)
	if len(without.Violations) > 0 && r.shard.first() {
		list = append(list, r.outcome(orderOfReference, first.plan, without))
	}
	if ref == nil || violates(without, r.settings.until...) {
		r.fill(list, 0)
		return
	}
	r.simulation.UnusedRules, r.simulation.Needs = ref.unused, ref.needs
	defer r.checkDefinitions(t)()
	if os.Getenv(FaultsVariable) == withoutFaults {
		r.fill(list, 0)
		return
	}
	r.explorer.places, r.explorer.skipped, r.sites = ref.places, r.settings.skipped, sitesOf(ref.places)
	all, err := r.plans(t, ref)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	places, reason := r.chosen(all)
	plans, places, outcomes := r.runChosen(t, ref, all, places)
	for i, o := range outcomes {
		switch {
		case o.Plan == "":
			continue // it was not run
		case o.Err != "":
			t.Errorf("plan %q: %s", o.Plan, o.Err)
		}
		r.settings.note(o.Meant)
		if len(o.Needs) > 0 {
			r.simulation.Needs = permission.Merge(r.simulation.Needs, o.Needs)
		}
		r.Plans = append(r.Plans, plans[i])
		list = append(list, r.outcome(places[i], plans[i], o))
	}
	r.simulation.Stopped = cmp.Or(r.simulation.Stopped, reason)
	r.simulation.Off = append(r.simulation.Off, r.settings.byDesign()...)
	ran := map[int]bool{}
	for i, o := range outcomes {
		ran[places[i]] = o.Plan != ""
	}
	mine := r.shard.of(all, r.sites)
	r.simulation.Plans.NotRun = notRun(at(all, mine), func(i int) bool { return ran[mine[i]] })
	left := 0
	for _, kind := range r.simulation.Plans.NotRun {
		left += kind.Plans
	}
	r.fill(list, left)
}

// runChosen runs plans at some places of the list of all, and what a swarm without end draws after
// them. It returns all that were to be run, with their places; those of a swarm without end follow
// the list, by their numbers.
func (r *Report) runChosen(t *testing.T, ref *reference, all []fault.Plan, places []int) ([]fault.Plan, []int, []outcome) {
	t.Helper()
	endless := newSwarm(r.settings.seed, ref.allowed(r.settings), nil)
	endless.part = r.shard
	if r.settings.endless && r.settings.transitions == nil {
		r.explorer.more = func() []fault.Plan { return endless.draw(plansAtOnce) }
	}
	plans, outcomes := r.run(t, at(all, places))
	for _, p := range plans[len(places):] {
		places = append(places, len(all)+int(endless.seen[p.String()]))
	}
	return plans, places, outcomes
}

// at returns the plans at some places of a list.
func at(all []fault.Plan, places []int) []fault.Plan {
	plans := make([]fault.Plan, len(places))
	for i, place := range places {
		plans[i] = all[place]
	}
	return plans
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

// chosen returns which of the plans are to be run, in order, and why others of the shard are not,
// if there are any.
func (r *Report) chosen(all []fault.Plan) (places []int, reason string) {
	mine := r.shard.of(all, r.sites)
	if r.settings.sample > 0 && r.shard == (shard{}) {
		if places = sample(all, r.settings.sample); len(places) < len(mine) {
			reason = report.Sample
		}
		return places, reason
	}
	inBudget := r.budget.of(all, r.sites)
	places = slices.DeleteFunc(slices.Clone(mine), func(i int) bool { _, ok := slices.BinarySearch(inBudget, i); return !ok })
	if len(places) < len(mine) {
		reason = report.Budget + r.budget.text
	}
	return places, reason
}

// orderOfReference is the place of the run without faults in the list of all plans. When it
// violates an oracle itself, it is among the outcomes, of the first shard only.
const orderOfReference = -1

// fill fills in the outcomes of plans, of which some were not run.
func (r *Report) fill(list []report.Outcome, notRun int) {
	r.simulation.Plans.Total = len(list) + notRun
	r.simulation.Fill(list)
	r.add(append(list, r.shrink()...))
}

// plansAtOnce is how many plans a swarm without end draws when all have begun.
const plansAtOnce = 256

// run runs the plans until all have run, the time of the test is over, or the user interrupts it.
// It returns them with those that a swarm without end has drawn and that were run.
func (r *Report) run(t *testing.T, planned []fault.Plan) ([]fault.Plan, []outcome) {
	t.Helper()
	deadline, _ := r.deadline()
	stop := newStopper(deadline)
	stop.spend(r.budget)
	defer stop.onInterrupt()()
	r.explorer.stop, r.explorer.found, r.explorer.order, r.explorer.joins = stop, newFound(t.Name()), func(plans []fault.Plan) []int { return telling(plans, r.sites) }, !r.settings.whole
	b := r.explorer.runBatch(planned)
	if b.failure != nil {
		t.Fatalf("sim: %v", b.failure)
	}
	plans, outcomes := b.run(len(planned))
	r.simulation.Stopped = stop.stopped()
	if slices.ContainsFunc(outcomes, func(o outcome) bool { return o.Plan == "" }) {
		switch {
		case r.simulation.Stopped != "":
		case len(r.settings.until) > 0 && slices.ContainsFunc(outcomes, func(o outcome) bool { return violates(o, r.settings.until...) }):
			r.simulation.Stopped = report.Enough
		default:
			r.simulation.Stopped = report.Slow
		}
	} else if r.explorer.more == nil || strings.HasPrefix(r.simulation.Stopped, report.Budget) {
		r.simulation.Stopped = "" // a swarm without end has had its time
	}
	// What follows may take some of the time that is kept for it.
	r.explorer.stop, r.explorer.found, r.explorer.order, r.explorer.joins, r.explorer.more = newStopper(deadline), nil, nil, false, nil
	return plans, outcomes
}

// outcome returns what a report needs of the outcome of a plan.
func (r *Report) outcome(order int, plan fault.Plan, o outcome) report.Outcome {
	return report.Outcome{
		Order: order, Plan: plan, Again: r.again.line(plan), Requests: o.Requests, Fired: o.Fired,
		Joined: o.Joined, Violations: o.Violations, Writes: o.Writes, Trace: o.Trace,
	}
}

// shrink makes the plans of the findings smaller that are printed in full, where a smaller one shows
// the same. It returns the outcomes of these plans.
func (r *Report) shrink() []report.Outcome {
	var list []report.Outcome
	for n, f := range r.simulation.Worst() {
		if n == report.DefaultFull || r.simulation.Stopped == report.Interrupted {
			break
		}
		plan, err := fault.ParsePlan(f.Example.Text)
		if err != nil {
			continue
		}
		smaller, o, ok := r.explorer.shrink(plan, f)
		if !ok {
			continue
		}
		shrunk := r.outcome(f.Example.Order, smaller, o)
		at := slices.IndexFunc(r.simulation.Findings, func(other report.Finding) bool { return other.Key == f.Key })
		r.simulation.Findings[at].Show(shrunk, shows(o, f))
		r.simulation.Findings[at].Key = f.Key // what differs most may be something else now
		list = append(list, shrunk)
	}
	return list
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
	all.until, all.found, all.stop, all.order = nil, nil, nil, nil // all runs are wanted, above all those that violate something
	outcomes, err := all.run(plans)
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
		list = append(list, report.Off{Fault: kind.String(), Reason: s.skipped[kind]})
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
