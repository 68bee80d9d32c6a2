// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

func mustParse(t *testing.T, texts ...string) []fault.Plan {
	t.Helper()
	var plans []fault.Plan
	for _, text := range texts {
		plan, err := fault.ParsePlan(text)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, plan)
	}
	return plans
}

func violation(name oracle.Name, text string, differences ...oracle.Difference) oracle.Violation {
	return oracle.Violation{Oracle: name, Text: text, Differences: differences}
}

// traceOf is the text of a trace of n lines, with a fault in one of them.
func traceOf(n, faultAt int) string {
	var b strings.Builder
	for i := range n {
		what := fmt.Sprintf("write %-3d", i)
		if i == faultAt {
			what = "fault    "
		}
		fmt.Fprintf(&b, "%11ds  operator    %s  line %d\n", i, what, i)
	}
	return b.String()
}

// A finding says what is wrong, with which plan, and what happened around the fault and at the end.
func TestTextOfAFinding(t *testing.T) {
	plan := mustParse(t, "crash after write 3")[0]
	f := &finding{
		plan: plan, plans: 3, outcome: outcome{Trace: traceOf(100, 40)},
		violation: oracle.Violation{Oracle: oracle.SameEnd, Text: "the world is another one:\n  - secrets default/x is missing", Entry: 90},
	}
	lines := strings.Split(f.String(), "\n")
	want := []string{
		"same-end: the world is another one:",
		"  - secrets default/x is missing",
		"",
		"with: crash after write 3 (and in 2 other plans)",
		"",
		"what happened:",
		"      ... 28 lines ...",
		"           28s  operator    write 28   line 28",
	}
	if diff := cmp.Diff(want, lines[:len(want)]); diff != "" {
		t.Error(diff)
	}
	// 12 lines before the fault, 30 with it and after it; 12 before the violation and its own.
	rest := []string{
		"           69s  operator    write 69   line 69",
		"      ... 8 lines ...",
		"           78s  operator    write 78   line 78",
	}
	i := len(want) - 1 + 41
	if diff := cmp.Diff(rest, lines[i:i+3]); diff != "" {
		t.Error(diff)
	}
	end := []string{"           90s  operator    write 90   line 90", "      ... 9 lines ...", ""}
	if diff := cmp.Diff(end, lines[len(lines)-3:]); diff != "" {
		t.Error(diff)
	}
}

// Without a fault the beginning is shown, and a run without a trace has none.
func TestExcerpts(t *testing.T) {
	f := &finding{violation: oracle.Violation{Oracle: oracle.OperatorRuns, Text: "it ended", Entry: 1000}, plans: 1, outcome: outcome{Trace: traceOf(50, -1)}}
	lines := strings.Split(strings.TrimSpace(f.excerpt()), "\n")
	if len(lines) != linesBefore+linesAfter+1 || strings.TrimSpace(lines[len(lines)-1]) != "... 8 lines ..." {
		t.Errorf("%d lines, the last one is %q", len(lines), lines[len(lines)-1])
	}
	f.outcome.Trace = ""
	if got, want := f.String(), "operator-runs: it ended\n\nwith: no fault"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What several plans show in the same way is one finding: numbers, and what else differs in worlds
// besides the first difference, make no new kind. The plan with the fewest faults represents it.
func TestFindingsAreGrouped(t *testing.T) {
	missing := oracle.Difference{Thing: "secrets default/x", Want: "there"}
	changed := oracle.Difference{Thing: "secrets default/x", Path: ".data.a", Want: "1", Got: "2"}
	plans := mustParse(t, "crash after write 1; crash after write 2", "crash after write 1", "crash after write 7", "no fault")
	outcomes := []outcome{
		{Violations: []oracle.Violation{violation(oracle.SameWork, "x was created 2 times\nat 1"), violation(oracle.SameEnd, "a", missing)}},
		{Violations: []oracle.Violation{violation(oracle.SameWork, "x was created 13 times\nat 2")}},
		{Violations: []oracle.Violation{violation(oracle.SameEnd, "b", missing, changed), violation(oracle.SameWork, "y was created 2 times")}},
		{Violations: []oracle.Violation{violation(oracle.SameEnd, "a", changed)}},
	}
	var got []string
	for _, f := range findings(plans, outcomes) {
		got = append(got, fmt.Sprintf("%s: %s, with %s, in %d", f.violation.Oracle, firstLines(f.violation.Text, 1), f.plan, f.plans))
	}
	want := []string{
		"same-work: x was created 13 times, with crash after write 1, in 2",
		"same-end: b, with crash after write 7, in 2",
		"same-work: y was created 2 times, with crash after write 7, in 1",
		"same-end: a, with no fault, in 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSummary(t *testing.T) {
	plans := mustParse(t, "seed 1", "crash after write 1", "crash after write 2", "crash after write 1; crash after write 2")
	twice := []oracle.Violation{violation(oracle.SameEnd, "a"), violation(oracle.SameEnd, "b")}
	outcomes := []outcome{
		{Requests: 10}, {Requests: 20, Fired: []bool{true}, Violations: twice}, {Requests: 30, Fired: []bool{true}, Violations: twice},
		{Requests: 40, Fired: []bool{true, false}, Violations: []oracle.Violation{violation(oracle.NoPanic, "c")}},
	}
	s := newSettings([]Option{WithoutOracle(oracle.SameWork, "a job each time"), WithoutFault(fault.JumpClock, "it has no clock")})
	want := `4 plans: 2 single faults, 1 pairs, 1 without faults in other orders; 100 requests; ` +
		`in 1 plans a fault found no place, because the run had become another one
  no-panic               violated in 1 plans
  same-end               violated in 2 plans
  same-work              switched off: a job each time
  faults "jump the clock by {for} at write {at}" left out: it has no clock`
	if diff := cmp.Diff(want, summary(plans, outcomes, s)); diff != "" {
		t.Error(diff)
	}
}

// A plan is run again with a line that can be pasted, also in a subtest.
func TestTheLineThatRunsAPlanAgain(t *testing.T) {
	plan := mustParse(t, "seed 2; crash after write 1; miss event 3 of configmaps")[0]
	r := repeat{test: "TestWidgets/with children", dir: packageOf(1)}
	want := `go test github.com/ctrlkit/ctrlkit/sim -run '^TestWidgets$/^with children$' -sim.plan='seed 2; crash after write 1; miss event 3 of configmaps'`
	if got := r.line(plan); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// printed is a test that only records what is reported to it.
type printed struct {
	testing.TB
	errors, logs []string
}

func (p *printed) Helper()                   {}
func (p *printed) Name() string              { return "TestX" }
func (p *printed) Errorf(f string, a ...any) { p.errors = append(p.errors, fmt.Sprintf(f, a...)) }
func (p *printed) Logf(f string, a ...any)   { p.logs = append(p.logs, fmt.Sprintf(f, a...)) }

// A report fails the test with each kind of finding, up to a limit, and logs what was done.
func TestPrint(t *testing.T) {
	progress := filepath.Join(t.TempDir(), "progress")
	t.Setenv(ProgressVariable, progress)
	r := &Report{Plans: mustParse(t, "crash after write 1"), settings: newSettings(nil), outcomes: make([]outcome, 1), elapsed: time.Second}
	for i := range maxFindings + 2 {
		r.Findings = append(r.Findings, Finding{Text: fmt.Sprint("finding ", i), Again: "go test"})
	}
	p := &printed{}
	r.print(p)
	if len(p.errors) != maxFindings+1 || p.errors[0] != "finding 0\nagain: go test" || p.errors[maxFindings] != "... and 2 more kinds of findings" {
		t.Errorf("got %q", p.errors)
	}
	want := []string{"1 plans: 1 single faults, 0 pairs, 0 without faults in other orders; 0 requests; 1s"}
	if diff := cmp.Diff(want, p.logs); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(progress)
	if err != nil {
		t.Fatal(err)
	}
	wantLine := `{"Test":"TestX","Done":1,"Total":1,"Bad":7,"Summary":"1 plans: 1 single faults, 0 pairs, 0 without faults in other orders; 0 requests","Elapsed":1000000000}` + "\n"
	if diff := cmp.Diff(wantLine, string(data)); diff != "" {
		t.Error(diff)
	}

	// A workload that fails without a fault has run no plans, and there is nothing to sum up.
	p = &printed{}
	(&Report{Findings: r.Findings[:1]}).print(p)
	if len(p.errors) != 1 || len(p.logs) != 0 {
		t.Errorf("got %q and %q", p.errors, p.logs)
	}
}

// Progress is reported every two seconds, and only to a command that asks for it.
func TestProgress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress")
	reportProgress(message{}) // to no one
	t.Setenv(ProgressVariable, file)
	synctest.Test(t, func(t *testing.T) {
		report := newProgress(t)
		for i := range 5 {
			time.Sleep(time.Second)
			report(i+1, 10, i)
		}
	})
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Test":"TestProgress","Done":2,"Total":10,"Bad":1}` + "\n" + `{"Test":"TestProgress","Done":4,"Total":10,"Bad":3}` + "\n"
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	t.Setenv(ProgressVariable, filepath.Join(file, "not-a-directory"))
	reportProgress(message{}) // progress is only shown: that it can't be is no failure
}
