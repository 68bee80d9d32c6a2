// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// finding is one way in which an oracle was violated, with the first plan that showed it.
type finding struct {
	plan      fault.Plan
	outcome   outcome
	violation oracle.Violation
	plans     int // how many plans showed it
}

var digits = regexp.MustCompile(`\d+`)

// kindOfViolation returns what two violations of the same kind have in common: the oracle and the
// text without its numbers, and for differences what differs.
func kindOfViolation(v oracle.Violation) string {
	text := firstLines(v.Text, 1)
	if v.Oracle == oracle.SilentWhenIdle || v.Oracle == oracle.NoNoopWrites {
		text = strings.TrimPrefix(strings.TrimPrefix(text, "a resync "), "a restart ") // either shows the same mistake
	}
	if len(v.Differences) > 0 {
		d := v.Differences[0]
		text = d.Thing + " " + d.Path
	}
	return string(v.Oracle) + " " + digits.ReplaceAllString(text, "#")
}

// findings groups what went wrong, in the order of the plans.
func findings(plans []fault.Plan, outcomes []outcome) []*finding {
	known := map[string]*finding{}
	var list []*finding
	for i, o := range outcomes {
		for _, v := range o.Violations {
			f, ok := known[kindOfViolation(v)]
			if !ok {
				f = &finding{plan: plans[i], outcome: o, violation: v}
				known[kindOfViolation(v)] = f
				list = append(list, f)
			}
			f.plans++
			// The plan with the fewest faults explains best.
			if len(plans[i].Faults) < len(f.plan.Faults) {
				f.plan, f.outcome, f.violation = plans[i], o, v
			}
		}
	}
	return list
}

// How many lines of the trace are shown before a fault or a violation, and from a fault on.
const (
	linesBefore = 12
	linesAfter  = 30
)

// excerpt returns the trace around the faults and the violation.
func (f *finding) excerpt() string {
	lines := strings.Split(strings.TrimRight(f.outcome.Trace, "\n"), "\n")
	keep := make([]bool, len(lines))
	for i, line := range lines {
		if !strings.Contains(line, "  fault      ") && !strings.Contains(line, "  fault  ") && i != f.violation.Entry {
			continue
		}
		after := linesAfter
		if i == f.violation.Entry {
			after = 1
		}
		for j := max(0, i-linesBefore); j < min(len(lines), i+after); j++ {
			keep[j] = true
		}
	}
	if !slices.Contains(keep, true) {
		for i := range min(len(lines), linesBefore+linesAfter) {
			keep[i] = true
		}
	}
	var b strings.Builder
	skipped := 0
	for i, line := range lines {
		if !keep[i] {
			skipped++
			continue
		}
		if skipped > 0 {
			fmt.Fprintf(&b, "      ... %d lines ...\n", skipped)
			skipped = 0
		}
		b.WriteString("  " + line + "\n")
	}
	if skipped > 0 {
		fmt.Fprintf(&b, "      ... %d lines ...\n", skipped)
	}
	return b.String()
}

// String returns a finding as a person reads it.
func (f *finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", f.violation.Oracle, f.violation.Text)
	fmt.Fprintf(&b, "\nwith: %s", f.plan)
	if f.plans > 1 {
		fmt.Fprintf(&b, " (and in %d other plans)", f.plans-1)
	}
	if f.outcome.Trace != "" {
		fmt.Fprintf(&b, "\n\nwhat happened:\n%s", f.excerpt())
	}
	return b.String()
}

// summary is the table of what was done.
func summary(plans []fault.Plan, outcomes []outcome, s *settings) string {
	singles, pairs, missed, requests := 0, 0, 0, 0
	bad := map[oracle.Name]int{}
	for i, o := range outcomes {
		switch len(plans[i].Faults) {
		case 1:
			singles++
		case 2:
			pairs++
		}
		if slices.Contains(o.Fired, false) {
			missed++
		}
		requests += o.Requests
		seen := map[oracle.Name]bool{}
		for _, v := range o.Violations {
			if !seen[v.Oracle] {
				seen[v.Oracle] = true
				bad[v.Oracle]++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d plans: %d single faults, %d pairs, %d without faults in other orders; %d requests", len(plans), singles, pairs, len(plans)-singles-pairs, requests)
	if missed > 0 {
		fmt.Fprintf(&b, "; in %d plans a fault found no place, because the run had become another one", missed)
	}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		fmt.Fprintf(&b, "\n  %-22s violated in %d plans", name, bad[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.without)) {
		fmt.Fprintf(&b, "\n  %-22s switched off: %s", name, s.without[name])
	}
	for _, kind := range slices.Sorted(maps.Keys(s.rules.Keeps)) {
		fmt.Fprintf(&b, "\n  objects of %s are kept: %s", kind, s.rules.Keeps[kind])
	}
	for _, kind := range slices.Sorted(maps.Keys(s.skipped)) {
		fmt.Fprintf(&b, "\n  faults %q left out: %s", kind, s.skipped[kind])
	}
	return b.String()
}

// A Report is what an exploration has done and found.
type Report struct {
	Plans    []fault.Plan // that were run, besides the one without faults
	Findings []Finding    // the plan with the fewest faults for each

	workload *Workload
	crds     []*apiextensionsv1.CustomResourceDefinition
	settings *settings
	again    *repeat
	explorer *explorer
	outcomes []outcome
	elapsed  time.Duration
}

// A Finding is one way in which an oracle did not hold.
type Finding struct {
	Plan      fault.Plan
	Violation oracle.Violation
	Plans     int    // how many plans showed it
	Text      string // as a person reads it, with what happened
	Again     string // the line that runs the plan again
}

// explore runs the workload without faults, and then all plans.
func (r *Report) explore(t *testing.T) {
	t.Helper()
	started := time.Now()
	ref, first, err := findReference(t, r.workload, r.crds, r.settings)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	without := outcome{Trace: first.trace.String(), Violations: first.violations, Logs: first.trace.Logs()}
	if ref == nil || violates(without, r.settings.until...) {
		r.add(findings([]fault.Plan{first.plan}, []outcome{without}))
		return
	}
	r.Plans = ref.plans(r.settings)
	r.explorer.places, r.explorer.skipped = ref.places, r.settings.skipped
	if r.outcomes, err = r.explorer.run(r.Plans); err != nil {
		t.Fatalf("sim: %v", err)
	}
	for _, o := range r.outcomes {
		if o.Err != "" {
			t.Errorf("plan %q: %s", o.Plan, o.Err)
		}
	}
	found := findings(append([]fault.Plan{first.plan}, r.Plans...), append([]outcome{without}, r.outcomes...))
	// Only findings that are printed are worth more runs.
	for _, f := range found[:min(len(found), maxFindings)] {
		if plan, o, smaller := r.explorer.shrink(f.plan, f.violation); smaller {
			f.plan, f.outcome = plan, o
			f.violation = o.Violations[slices.IndexFunc(o.Violations, func(v oracle.Violation) bool { return shows(v, f.violation) })]
		}
	}
	r.add(found)
	r.elapsed = time.Since(started)
}

func (r *Report) add(found []*finding) {
	for _, f := range found {
		r.Findings = append(r.Findings, Finding{
			Plan: f.plan, Violation: f.violation, Plans: f.plans, Text: f.String(), Again: r.again.line(f.plan),
		})
	}
}

// Repeat runs a plan again, several times, and returns what each run violated.
func (r *Report) Repeat(t *testing.T, plan fault.Plan, times int) [][]oracle.Violation {
	t.Helper()
	plans := make([]fault.Plan, times)
	for i := range plans {
		plans[i] = plan
	}
	all := *r.explorer
	all.until = nil // all runs are wanted, above all those that violate something
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

// maxFindings is how many kinds of findings are printed in full.
const maxFindings = 5

// print fails the test with the findings, and logs what was done.
func (r *Report) print(t testing.TB) {
	t.Helper()
	for i, f := range r.Findings {
		if i == maxFindings {
			t.Errorf("... and %d more kinds of findings", len(r.Findings)-i)
			break
		}
		t.Errorf("%s\nagain: %s", f.Text, f.Again)
	}
	if len(r.Plans) == 0 {
		return
	}
	text := summary(r.Plans, r.outcomes, r.settings)
	t.Logf("%s; %s", text, r.elapsed.Round(time.Millisecond))
	reportProgress(message{Test: t.Name(), Done: len(r.Plans), Total: len(r.Plans), Bad: len(r.Findings), Summary: text, Elapsed: r.elapsed})
}

// runOne runs the plan that was asked for, in this process, and prints all of it.
func (r *Report) runOne(t *testing.T) {
	t.Helper()
	plan, err := fault.ParsePlan(*planFlag)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	ref, result, err := findReference(t, r.workload, r.crds, r.settings)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	if ref != nil {
		if result, err = runPlan(t, r.workload, r.crds, plan, ref, r.settings.without); err != nil {
			t.Fatalf("sim: %v", err)
		}
	}
	text := fmt.Sprintf("%s\n%s\nlog of the operator:\n%s", result.plan, result.trace, strings.Join(result.trace.Logs(), "\n"))
	t.Log(text)
	for i, fired := range result.fired {
		if !fired {
			t.Errorf("the run never came to the place of %q", plan.Faults[i])
		}
	}
	for _, v := range result.violations {
		t.Errorf("%s", v)
	}
}
