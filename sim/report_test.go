// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
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

// A report fails the test with a line for each finding, with the worst ones in full, and logs what
// was done.
func TestPrint(t *testing.T) {
	progress := filepath.Join(t.TempDir(), "progress")
	t.Setenv(ProgressVariable, progress)
	plans := mustParse(t, "no fault", "crash after write 1", "crash after write 2", "crash after write 3", "crash after write 4",
		"crash after write 5", "crash after write 6", "crash after write 7")
	var outcomes []report.Outcome
	for i, plan := range plans {
		o := report.Outcome{Order: i, Plan: plan, Again: "go test"}
		if i > 0 {
			o.Violations = []oracle.Violation{violation(oracle.SameEnd, strings.Repeat("x", i))}
		}
		outcomes = append(outcomes, o)
	}
	r := &Report{Plans: plans, simulation: report.Simulation{Test: "TestX", Seconds: 1}}
	r.simulation.Plans.Total = 8
	r.simulation.Fill(outcomes)
	p := &printed{}
	r.print(p)
	// The overview, five findings, and how to see the others.
	if len(p.errors) != 1+report.DefaultFull+1 || !strings.HasPrefix(p.errors[0], "7 findings in 7 of 8 plans, the worst first:\n") {
		t.Fatalf("got %q", p.errors)
	}
	if got := p.errors[1]; !strings.HasPrefix(got, "different end: x (same-end)\n") || !strings.Contains(got, "\n\nwith: crash after write 1\n") || !strings.HasSuffix(got, "\n\nagain: go test") {
		t.Errorf("got %q", got)
	}
	want := []string{"8 plans: 7 single faults, 0 pairs, 1 without faults in other orders; 0 requests\n  same-end               violated in 7 plans; 1s"}
	if diff := cmp.Diff(want, p.logs); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(progress)
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil || m.Done != 8 || m.Total != 8 || m.Bad != 7 || m.Elapsed != time.Second {
		t.Errorf("got %+v, %v", m, err)
	}

	// A workload that fails without a fault has run no plans: the summary says why.
	p = &printed{}
	alone := &Report{simulation: report.Simulation{}}
	alone.simulation.Fill(outcomes[1:2])
	alone.print(p)
	if len(p.errors) != 1 || len(p.logs) != 1 || !strings.Contains(p.logs[0], "\n  no fault was tried: the run without faults has to pass first") {
		t.Errorf("got %q and %q", p.errors, p.logs)
	}
}

// A simulation that was stopped early fails, and says how much it has done: what was not run may
// have findings.
func TestPrintWhenStopped(t *testing.T) {
	for reason, want := range map[string]int{report.TimeLimit: 1, report.Interrupted: 1, report.Enough: 0, "": 0} {
		p := &printed{}
		r := &Report{Plans: mustParse(t, "no fault"), simulation: report.Simulation{Stopped: reason, Plans: report.Plans{Run: 812, Total: 1073}}}
		r.print(p)
		if len(p.errors) != want {
			t.Errorf("%q: got %q", reason, p.errors)
		}
		if want > 0 && !strings.HasPrefix(p.errors[0], "stopped after 812 of 1,073 plans: "+reason) {
			t.Errorf("%q: got %q", reason, p.errors)
		}
	}
}

// Findings are reported when a plan shows them first, a line for each kind.
func TestFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress")
	t.Setenv(ProgressVariable, file)
	found := newFound("TestX")
	plans := mustParse(t, "crash after write 1")
	found(plans[0], violation(oracle.NoLeak, "b-1 is an orphan"))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Test":"TestX","Done":0,"Total":0,"Bad":0,"Found":"TestX: found leak or loss: b-1 is an orphan (no-leak), with: crash after write 1"}` + "\n"
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
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
			report(explore.Progress{Done: i + 1, Total: 10, Bad: i})
		}
	})
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Test":"TestProgress","Done":2,"Total":10,"Bad":1,"Line":"2 of 10 plans, 1 with findings"}` + "\n" + `{"Test":"TestProgress","Done":4,"Total":10,"Bad":3,"Line":"4 of 10 plans, 3 with findings"}` + "\n"
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	t.Setenv(ProgressVariable, filepath.Join(file, "not-a-directory"))
	reportProgress(message{}) // progress is only shown: that it can't be is no failure
}

// The simulations of a process come into one file, or into a file of the package in a directory; one
// that runs again replaces what it has written.
func TestPublish(t *testing.T) {
	dir := t.TempDir()
	saved := published.document
	defer func() { published.document = saved; *jsonFlag, *htmlFlag = "", "" }()
	published.document = report.Document{}
	*jsonFlag, *htmlFlag = filepath.Join(dir, "new", "all.json"), dir
	for _, s := range []report.Simulation{
		{Package: "example.com/a", Test: "TestX", Number: 1},
		{Package: "example.com/a", Test: "TestX", Number: 2},
		{Package: "example.com/a", Test: "TestX", Number: 1, Requests: 7},
	} {
		if err := publish(s); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(*jsonFlag)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	d, err := report.Read(f)
	if err != nil || len(d.Simulations) != 2 || d.Simulations[1].Requests != 7 {
		t.Errorf("got %+v, %v", d, err)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "example.com_a.html")); err != nil || !strings.Contains(string(page), "TestX") {
		t.Errorf("the page: %v\n%s", err, page)
	}
	*jsonFlag = filepath.Join(dir, "example.com_a.html", "x.json")
	if err := publish(report.Simulation{}); err == nil {
		t.Error("a report that can't be written is no error")
	}
	name := filepath.Join(dir, "sharded") + "/"
	if err := writeFile(name, ".json", report.Simulation{Package: "a/b", Shards: []string{"2/4"}}, d.Write); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(name, "a_b-2of4.json")); err != nil {
		t.Error(err)
	}
}

func TestViolated(t *testing.T) {
	plans := mustParse(t, "crash after write 1", "crash after write 2", "crash after write 3")
	finding := func(name oracle.Name, plans ...fault.Plan) report.Finding {
		f := report.Finding{Oracle: name}
		for _, p := range plans {
			f.Plans = append(f.Plans, report.Plan{Text: p.String()})
		}
		return f
	}
	r := &Report{simulation: report.Simulation{Findings: []report.Finding{
		finding(oracle.SameEnd, plans[0]), finding(oracle.NoLeak, plans[0], plans[1]), finding(oracle.SameEnd, plans[0], plans[1]),
	}}}
	both := []oracle.Name{oracle.NoLeak, oracle.SameEnd}
	for i, want := range [][]oracle.Name{both, both, nil} {
		if diff := cmp.Diff(want, r.Violated(plans[i])); diff != "" {
			t.Errorf("%s:\n%s", plans[i], diff)
		}
	}
}
