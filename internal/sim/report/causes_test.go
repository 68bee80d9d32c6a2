// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

func parse(t testing.TB, text string) fault.Plan {
	t.Helper()
	plan, err := fault.ParsePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func violation(name oracle.Name, text string, differences ...oracle.Difference) oracle.Violation {
	return oracle.Violation{Oracle: name, Text: text, Differences: differences, Entry: 1}
}

func at(file string, line int, object, request string) *Write {
	return &Write{
		What: "write 3", Actor: "operator-2", Request: request, Object: object, Answer: "201",
		Stack:   []Site{{file, line, "(*Reconciler).ensure"}, {file, 12, "(*Reconciler).Reconcile"}},
		Changes: []string{"+ spec.replicas: 3", "~ spec.image: a:1 -> a:2"},
	}
}

// fabricated is the outcomes of a simulation of 40 plans. One mistake, a stale read before a
// creation outside, shows in three plans, in four ways; another one is cosmetic and shows in most; a
// third has two plans, of which one happens to show the first mistake too.
func fabricated(t testing.TB) []Outcome {
	var outcomes []Outcome
	add := func(text string, violations []oracle.Violation, writes ...*Write) {
		plan := parse(t, text)
		o := Outcome{
			Order: len(outcomes), Plan: plan, Again: "go test -sim.plan='" + text + "'", Requests: 10, Violations: violations, Writes: writes,
			Fired: make([]bool, len(plan.Faults)),
		}
		for i := range o.Fired {
			o.Fired[i] = true
		}
		if len(violations) > 0 {
			o.Trace = "          0s  operator    start      \n          1s  operator    fault      " + text + "\n          2s  operator    write 3    create widgets\n"
		}
		outcomes = append(outcomes, o)
	}
	cosmetic := violation(oracle.TransitionTime, "widgets default/x: lastTransitionTime of condition Ready moved, its status stayed True")
	status := at("controllers/status.go", 40, "widgets default/x", "update widgets default/x status")
	leak := func(id int) []oracle.Violation {
		return []oracle.Violation{
			cosmetic,
			violation(oracle.SameEnd, "at checkpoint 2 of 3, the world is not what it is without the fault:\n  ~ ...",
				oracle.Difference{Thing: "widgets default/x", Path: ".status.bucket", Want: "b-1", Got: fmt.Sprint("b-", id)},
				oracle.Difference{Thing: "widgets default/x", Path: ".status.ready", Want: "true"}),
			violation(oracle.OneExternal, fmt.Sprintf("%d resources of buckets were created for widgets default/x, without the fault 1", id)),
			violation(oracle.NoLeak, fmt.Sprintf("widgets default/x is gone, its external resource b-%d of buckets is not", id)),
		}
	}
	create := at("controllers/bucket.go", 88, "", "buckets create x")
	add("seed 1", nil)
	add("crash after write 1", []oracle.Violation{cosmetic}, status)
	for i := range 3 {
		add(fmt.Sprintf("restart 4 events in the past of widgets after write %d", i+2), leak(i+2), status, status, create, create)
	}
	foreign := violation(oracle.ForeignUntouched, "update configmaps default/cm: the object was created by another client, and the operator is not its owner")
	write := at("controllers/config.go", 20, "configmaps default/cm", "update configmaps default/cm")
	add("occupy the name before write 4", []oracle.Violation{foreign, cosmetic}, write, status)
	add("occupy the name before write 4; restart 4 events in the past of widgets after write 2", append(leak(2), foreign), status, status, create, create, write)
	for n := len(outcomes); n < 40; n++ {
		if n%2 == 0 {
			add(fmt.Sprintf("refuse write %d: 409", n), []oracle.Violation{cosmetic}, status)
		} else {
			add(fmt.Sprintf("crash after write %d", n), nil)
		}
	}
	return outcomes
}

func simulation(outcomes []Outcome) *Simulation {
	s := &Simulation{Package: "example.com/op/controllers", Test: "TestWidgets", Number: 1, Seconds: 12.5}
	s.Plans.Total = len(outcomes)
	s.Fill(outcomes)
	return s
}

// One mistake is one finding, however it shows: the worst first, and what shows in the same plans
// below it. What only happens to show in the same plans is a finding of its own.
func TestFindingsAreGroupedByCause(t *testing.T) {
	s := simulation(fabricated(t))
	var got []string
	for _, f := range s.Findings {
		indent := ""
		if f.CoveredBy != "" {
			indent = "  "
		}
		got = append(got, fmt.Sprintf("%s%s: %s, %d plans, %s", indent, f.Class, f.Oracle, len(f.Plans), f.Example.Text))
	}
	want := []string{
		"leak or loss: no-leak, 4 plans, restart 4 events in the past of widgets after write 2",
		"  duplicate: one-external, 4 plans, restart 4 events in the past of widgets after write 2",
		"  wrong status: same-end, 4 plans, restart 4 events in the past of widgets after write 2",
		"foreign object: foreign-untouched, 2 plans, occupy the name before write 4",
		"cosmetic: transition-time, 22 plans, crash after write 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Plans{Total: 40, Run: 40, Singles: 38, Pairs: 1, Bad: 22}, s.Plans); diff != "" {
		t.Error(diff)
	}
}

// The text has a line for every finding, with a plan and how many plans show it.
func TestGoldenText(t *testing.T) {
	s := simulation(fabricated(t))
	s.Stopped, s.Plans.Total = TimeLimit, 1073
	s.Off = []Off{{Oracle: oracle.SameWork, Reason: "a job each time"}, {Fault: fault.JumpClock.Plain("any"), Reason: "it has no clock"}, {Declared: "reads nodes without a watch", Reason: "they do not change"}}
	s.Findings[3].Example.Note = "only without streaming lists"
	d := &Document{Simulations: []Simulation{*s, {Test: "TestGood", Package: "example.com/op/controllers", Number: 2}}}
	var b strings.Builder
	if err := d.Text(&b, Style{Full: 2}); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "report.txt", b.String())
	var page strings.Builder
	if err := d.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), `<p class="notice">declared: the operator reads nodes without a watch: they do not change</p>`) {
		t.Error("the page does not say what is declared")
	}
	var colored strings.Builder
	if err := d.Text(&colored, Style{Full: 2, Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(colored.String(), "\x1b[31;1mleak or loss\x1b[0m") || strings.Contains(b.String(), "\x1b") {
		t.Error("colors are missing, or are there without a terminal")
	}
}

// What makes the operator useless without a fault comes before what is worse under a fault. What is
// only cosmetic without a fault does not.
func TestWithoutAFaultComesFirst(t *testing.T) {
	s := simulation([]Outcome{
		{Order: -1, Plan: parse(t, "no fault"), Violations: []oracle.Violation{violation(oracle.EndsWell, "it is stuck"), violation(oracle.TransitionTime, "it moved")}},
		{Order: 1, Plan: parse(t, "refuse write 2: 409"), Violations: []oracle.Violation{violation(oracle.OneExternal, "2 resources")}},
	})
	var got []oracle.Name
	for _, f := range s.Worst() {
		got = append(got, f.Oracle)
	}
	if diff := cmp.Diff([]oracle.Name{oracle.EndsWell, oracle.OneExternal, oracle.TransitionTime}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const hint = "    with: no fault\n    mend what needs no fault first: the findings below may be its consequences\n\n 2. duplicate"
	if text := s.Overview(Style{}); strings.Count(text, hint) != 1 || strings.Count(text, "mend what") != 1 {
		t.Errorf("got\n%s", text)
	}
}

// The remedy depends on the plan: a stale cache has its own.
func TestRemedies(t *testing.T) {
	s := simulation(fabricated(t))
	if got := s.Findings[0].Remedy; !strings.Contains(got, "EnsureFresh") {
		t.Errorf("after a restart in the past: %q", got)
	}
	alone := simulation([]Outcome{{Plan: parse(t, "crash after call 1"), Violations: []oracle.Violation{violation(oracle.NoLeak, "a")}}})
	if got := alone.Findings[0].Remedy; got == "" || strings.Contains(got, "EnsureFresh") {
		t.Errorf("after a crash: %q", got)
	}
	for plan, want := range map[string]string{
		"occupy the name before write 1":                       "IsControlledBy",
		"occupy the name before write 1 by another controller": "IsControlledBy",
		"leave an orphan before write 1":                       "owner reference",
		"refuse write 1: 500":                                  "the whole status",
		"delete the object before write 1":                     "Owns",
		"miss event 1 of pods":                                 "stale cache",
		"wipe the status of pods default/x after write 1":      "",
	} {
		end := simulation([]Outcome{{Plan: parse(t, plan), Violations: []oracle.Violation{violation(oracle.SameEnd, "a")}}})
		if got := end.Findings[0].Remedy; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q does not name %q", plan, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	finding := func(line int, object string, plans ...int) Finding {
		f := Finding{Example: Example{Write: &Write{Object: object}}}
		if line > 0 {
			f.Example.Write.Stack = []Site{{"a.go", line, "f"}}
		}
		for _, p := range plans {
			f.Plans = append(f.Plans, Plan{Order: p})
		}
		return f
	}
	tests := map[string]struct {
		worse, other Finding
		want         bool
	}{
		"the same few plans of many":          {finding(1, "a", 1, 2, 3), finding(2, "b", 1, 2, 3), true},
		"a part of them":                      {finding(1, "a", 1, 2, 3), finding(2, "b", 2), true},
		"one of very many plans":              {finding(1, "a", 1, 2, 3, 4, 5, 6, 7, 8, 9), finding(2, "b", 2), false},
		"one of very many, of the object":     {finding(1, "a", 1, 2, 3, 4, 5, 6, 7, 8, 9), finding(2, "a", 2), true},
		"one of very many, of the line":       {finding(1, "a", 1, 2, 3, 4, 5, 6, 7, 8, 9), finding(1, "b", 2), true},
		"another plan":                        {finding(1, "a", 1, 2, 3), finding(2, "a", 1, 2, 4), false},
		"another plan, but the same line":     {finding(1, "a", 1, 2, 3), finding(1, "b", 1, 2, 4), true},
		"mostly other plans of the same line": {finding(1, "a", 1, 2, 3), finding(1, "b", 1, 4, 5), false},
		"lines that are not known":            {finding(0, "", 1, 2, 3), finding(0, "", 1, 4), false},
	}
	for name, tt := range tests {
		if got := covers(tt.worse, tt.other, 100); got != tt.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// Numbers, UIDs and generated names make no new kind. Another line of code, another object and
// another field do.
func TestKeys(t *testing.T) {
	leak := violation(oracle.NoLeak, "pods default/x-7bfd8 is gone, its external resource b-1 of buckets is not")
	missing := violation(oracle.SameEnd, "at checkpoint 1", oracle.Difference{Thing: "secrets default/x #2", Want: "there"},
		oracle.Difference{Thing: "widgets default/x", Path: ".status.n", Want: "1"})
	same := map[string][2]string{
		"numbers and generated names": {
			Key(leak, nil), Key(violation(oracle.NoLeak, "pods default/x-zq2xk is gone, its external resource b-23 of buckets is not\nmore"), nil),
		},
		"names of objects that the same line wrote": {
			Key(violation(oracle.SameWork, "configmaps default/a was created twice"), at("a.go", 1, "configmaps default/a", "")),
			Key(violation(oracle.SameWork, "configmaps default/b was created twice"), at("a.go", 1, "configmaps default/b", "")),
		},
		"worst differences": {
			Key(missing, nil), Key(violation(oracle.SameEnd, "at checkpoint 3", oracle.Difference{Thing: "secrets default/x", Want: "there"}), nil),
		},
	}
	for name, keys := range same {
		if keys[0] != keys[1] {
			t.Errorf("%s: %q and %q are different", name, keys[0], keys[1])
		}
	}
	keys := map[string]bool{
		Key(leak, nil): true, Key(missing, nil): true,
		Key(leak, at("a.go", 1, "", "")): true, Key(leak, at("a.go", 2, "", "")): true,
		Key(violation(oracle.SameEnd, "", oracle.Difference{Thing: "secrets default/x", Got: "there"}), nil):                         true,
		Key(violation(oracle.SameEnd, "", oracle.Difference{Thing: "secrets default/x", Path: ".data.a", Want: "1", Got: "2"}), nil): true,
		Key(violation(oracle.SameEnd, "", oracle.Difference{Thing: "secrets default/y", Want: "there"}), nil):                        true,
	}
	if len(keys) != 7 {
		t.Errorf("want 7 keys: %v", keys)
	}
}

// How many causes the findings of some plans have. Each plan shows one violation, or several, each with
// the line of code and the object of its write.
func TestCauses(t *testing.T) {
	type shown struct {
		plan  string
		v     oracle.Violation
		write *Write
	}
	missing := violation(oracle.SameEnd, "", oracle.Difference{Thing: "jobs default/b", Want: "there"})
	label := func(things ...string) oracle.Violation {
		v := violation(oracle.SameEnd, "")
		for _, thing := range things {
			v.Differences = append(v.Differences, oracle.Difference{Thing: thing, Path: ".metadata.labels.l", Got: "1"})
		}
		return v
	}
	differs, other := label("jobs default/a", "jobs default/b"), label("services default/s")
	moved := func(condition string, line int) shown {
		text := "widgets default/x: lastTransitionTime of condition " + condition + " moved, its status stayed True"
		return shown{"refuse write " + fmt.Sprint(line) + ": 429", violation(oracle.TransitionTime, text), at("status.go", line/10*10, "widgets default/x", "update")}
	}
	// Three plans show that an object was created twice, and eight that it is there at the end.
	twice := func(line int, object string) (list []shown) {
		for n := range 8 {
			plan := fmt.Sprintf("crash after write %d", n+1)
			if n < 3 {
				v := violation(oracle.SameWork, "controllerrevisions x-2 was created once, without the fault never")
				list = append(list, shown{plan, v, at("revision.go", 97, "controllerrevisions x-2", "create")})
			}
			list = append(list, shown{plan, violation(oracle.SameEnd, "...", oracle.Difference{Thing: object, Got: "there"}), at("revision.go", line, object, "create")})
		}
		return list
	}
	const orphan, occupied = "leave an orphan before write ", "occupy the name before write "
	for name, test := range map[string]struct {
		want  int
		shown []shown
	}{
		"more plans show it at the end":                      {1, twice(97, "controllerrevisions x-2")},
		"more plans show something, of another line":         {2, twice(98, "controllerrevisions x-2")},
		"more plans show something, of another object":       {2, twice(97, "controllerrevisions y-2")},
		"an orphan, whatever the operator leaves in the end": {1, []shown{{orphan + "2", missing, nil}, {orphan + "3", differs, nil}}},
		"a name that is taken, by anyone":                    {1, []shown{{occupied + "2", missing, nil}, {occupied + "3 by another controller", differs, nil}}},
		"an orphan and another obstacle":                     {2, []shown{{orphan + "2", missing, nil}, {occupied + "3", differs, nil}}},
		"orphans of two objects":                             {2, []shown{{orphan + "2", missing, nil}, {orphan + "1", other, nil}}},
		"other faults of one kind":                           {2, []shown{{"refuse write 2: 500", missing, nil}, {"refuse write 3: 500", differs, nil}}},
		"two conditions that one line writes":                {1, []shown{moved("Ready", 40), moved("Synced", 41)}},
		"two conditions of two lines":                        {2, []shown{moved("Ready", 40), moved("Synced", 50)}},
	} {
		var outcomes []Outcome
		for _, s := range test.shown {
			if n := len(outcomes); n == 0 || outcomes[n-1].Plan.String() != s.plan {
				outcomes = append(outcomes, Outcome{Order: n, Plan: parse(t, s.plan)})
			}
			o := &outcomes[len(outcomes)-1]
			o.Violations, o.Writes = append(o.Violations, s.v), append(o.Writes, s.write)
		}
		s := simulation(outcomes)
		s.Plans.Run = 10 // the others show nothing
		if s.Arrange(); len(s.Worst()) != test.want {
			t.Errorf("%s: %d causes, want %d", name, len(s.Worst()), test.want)
		}
	}
}

// Transitions are counted, and those of them that have a fault.
func TestSummaryOfTransitions(t *testing.T) {
	alone := Outcome{Plan: fault.Plan{Transition: "shop/a spec.size: removed"}, Requests: 3}
	with := Outcome{Plan: fault.Plan{Transition: "shop/a spec.size: removed", Faults: []fault.Fault{{Kind: fault.CrashAfterWrite, At: 1}}}, Requests: 4}
	for want, outcomes := range map[string][]Outcome{
		"2 transitions; 6 requests":                         {alone, alone},
		"2 transitions, 1 of them with a fault; 7 requests": {alone, with},
		"1 transitions; 0 requests":                         {{Plan: fault.Plan{Transition: "shop/a spec.size: removed"}}},
	} {
		s := Simulation{}
		s.Fill(outcomes)
		if got := s.Summary(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
