// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

func all(fault.Kind) bool { return true }

func one(int) int { return 1 }

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

func texts(plans []fault.Plan) []string {
	var list []string
	for _, plan := range plans {
		list = append(list, plan.String())
	}
	return list
}

func violation(name oracle.Name, text string) oracle.Violation {
	return oracle.Violation{Oracle: name, Text: text}
}

// fakeRunner runs plans by a function, each in a time.
type fakeRunner struct {
	takes time.Duration
	shows func(run int, p fault.Plan) []oracle.Violation

	mu   sync.Mutex // guards runs
	runs map[string]int
}

func (f *fakeRunner) Run(ctx context.Context, p fault.Plan) (Outcome, error) {
	select {
	case <-ctx.Done():
		return Outcome{Unfinished: true}, nil
	case <-time.After(f.takes):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[p.String()]++
	return Outcome{Plan: p.String(), Violations: f.shows(f.runs[p.String()], p)}, nil
}

func (f *fakeRunner) Stop() {}

// explorerOf returns an explorer of real time, with a budget that counts from now.
func explorerOf(f *fakeRunner, budget time.Duration) *Explorer {
	f.runs = map[string]int{}
	stop := &Stopper{}
	if budget > 0 {
		stop.Spend(Budget{Time: budget}, time.Now())
		stop.Kill = time.Now().Add(budget + 30*time.Second)
	}
	return &Explorer{
		Start: func() (Runner, error) { return f, nil }, Parallel: one, Allowed: all, Repeat: 2, OnlyFewer: true, Stop: stop, Rest: stop,
		Progress: func(Progress) {}, Again: fault.Plan.String,
	}
}

// An exploration ends with its budget: nothing is begun after it, also no repetition, and what is
// under way is cut.
func TestExplorationEndsWithTheBudget(t *testing.T) {
	for _, test := range []struct {
		name          string
		takes, budget time.Duration
		finds         bool
		took          time.Duration
		run           int
	}{
		{"the last plan ends by itself", 20 * time.Second, 50 * time.Second, false, time.Minute, 3},
		{"the last plan is cut", 40 * time.Second, 50 * time.Second, false, 80 * time.Second, 2},
		{"even the first one is", time.Hour, time.Second, false, 31 * time.Second, 0},
		{"its findings are not repeated any more", 20 * time.Second, 30 * time.Second, true, 40 * time.Second, 1},
		{"a repetition is cut", 20 * time.Second, 5 * time.Second, true, 20 * time.Second, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeRunner{takes: test.takes, shows: func(int, fault.Plan) []oracle.Violation {
					if test.finds {
						return []oracle.Violation{violation(oracle.SameEnd, "a")}
					}
					return nil
				}}
				e, begun, s := explorerOf(f, test.budget), time.Now(), &report.Simulation{}
				ran, err := e.Explore(t.Context(), mustParse(t, "crash after write 1", "crash after write 2", "crash after write 3", "crash after write 4"), s)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took != test.took || len(ran) != test.run || s.Stopped != report.Budget+test.budget.String() {
					t.Errorf("%d plans in %s, stopped because of %q", len(ran), took, s.Stopped)
				}
				if test.finds && !strings.Contains(ran[0].Violations[0].Text, "there was no time to run the plan 3 times") {
					t.Errorf("got %q", ran[0].Violations)
				}
			})
		})
	}
}

// A swarm without end that gets through no plan has too few, and one that gets through some is over with its
// time.
func TestSwarmWithoutTime(t *testing.T) {
	for takes, want := range map[time.Duration]string{time.Hour: report.Budget + "1m0s", time.Second: ""} {
		synctest.Test(t, func(t *testing.T) {
			e, s := explorerOf(&fakeRunner{takes: takes, shows: func(int, fault.Plan) []oracle.Violation { return nil }}, time.Minute), &report.Simulation{}
			e.Endless, e.Only, e.Orders = true, true, 1
			for i := range 30 {
				e.Places = append(e.Places, fault.Place{Point: fault.AtRead, At: i + 1})
			}
			ran, err := e.Explore(t.Context(), nil, s)
			if err != nil {
				t.Fatal(err)
			}
			list := []report.Outcome{{Order: OrderOfReference}}
			for _, r := range ran {
				list = append(list, e.Report(r))
			}
			e.Fill(t.Context(), s, list)
			if s.Stopped != want || s.TooFew() != (want != "") || (len(ran) > 0) != (want == "") {
				t.Errorf("%d plans, of %+v, stopped because of %q", len(ran), s.Plans, s.Stopped)
			}
		})
	}
}

// Where time is real, a plan that shows something new is run again, and one that shows the same is not.
func TestFindingsAreRepeated(t *testing.T) {
	f := &fakeRunner{shows: func(run int, p fault.Plan) []oracle.Violation {
		list := []oracle.Violation{violation(oracle.SameEnd, "a")}
		if p.Faults[0].At == 1 && run != 2 {
			list = append(list, violation(oracle.NoLeak, "b"))
		}
		return list
	}}
	e, s := explorerOf(f, 0), &report.Simulation{}
	var found []string
	e.Found = func(p fault.Plan, v oracle.Violation) { found = append(found, p.String()+": "+string(v.Oracle)) }
	ran, err := e.Explore(t.Context(), mustParse(t, "crash after write 1", "crash after write 2"), s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"crash after write 1": 3, "crash after write 2": 1}, f.runs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"crash after write 1: same-end", "crash after write 1: no-leak"}, found); diff != "" {
		t.Error(diff)
	}
	if got := ran[0].Violations; got[0].Text != "a" || got[1].Text != "b\n(seen in 2 of 3 runs of the plan: it depends on timing)" {
		t.Errorf("got %q", got)
	}
}

// Plans that show the same at the same time are not all repeated, and what they show is said before they are.
func TestOneOfSeveralRunnersRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRunner{takes: time.Minute, shows: func(int, fault.Plan) []oracle.Violation { return []oracle.Violation{violation(oracle.SameEnd, "a")} }}
		e, begun := explorerOf(f, 0), time.Now()
		e.Parallel = func(plans int) int { return plans }
		var said []time.Duration
		e.Found = func(fault.Plan, oracle.Violation) { said = append(said, time.Since(begun)) }
		if _, err := e.Run(t.Context(), mustParse(t, "crash after write 1", "crash after write 2", "crash after write 3")); err != nil {
			t.Fatal(err)
		}
		runs := 0
		for _, n := range f.runs {
			runs += n
		}
		if runs != 5 || !slices.Equal(said, []time.Duration{time.Minute}) {
			t.Errorf("%d runs of 3 plans, want 5, and found something after %s", runs, said)
		}
	})
}

// A finding of several faults shows those that are needed, and faults are replaced by milder ones only where
// a plan takes no time.
func TestFindingsHaveTheFewestFaults(t *testing.T) {
	for given, want := range map[string]string{
		"crash after write 1; refuse write 3: 500":                                          "refuse write 3: 500",
		"crash after write 1; crash after write 2; refuse write 3: 500; refuse read 1: 500": "refuse write 3: 500",
		"refuse write 3: 500": "refuse write 3: 500",
	} {
		f := &fakeRunner{shows: func(_ int, p fault.Plan) []oracle.Violation {
			if p.Has(fault.RefuseWrite) {
				return []oracle.Violation{violation(oracle.SameEnd, "a")}
			}
			return nil
		}}
		for _, fewer := range []bool{true, false} {
			e, s := explorerOf(f, 0), &report.Simulation{}
			e.OnlyFewer, e.Places = fewer, []fault.Place{{Point: fault.AtWrite, At: 3, Write: &fault.Write{Verb: "update", Exists: true, Conditional: true}}}
			ran, err := e.Explore(t.Context(), mustParse(t, given), s)
			if err != nil {
				t.Fatal(err)
			}
			e.Fill(t.Context(), s, []report.Outcome{e.Report(ran[0])})
			if got := s.Findings[0].Example.Text; (got == want) != fewer || !fewer && !strings.HasPrefix(got, "refuse write 3: ") {
				t.Errorf("%q became %q, want %q", given, got, want)
			}
		}
	}
}

// An interrupt ends an exploration: plans that it has cut count as not run.
func TestInterruptedExploration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		e, s := explorerOf(&fakeRunner{takes: 20 * time.Second, shows: func(int, fault.Plan) []oracle.Violation { return nil }}, 0), &report.Simulation{}
		ran, err := e.Explore(ctx, mustParse(t, "crash after write 1", "crash after write 2", "crash after write 3"), s)
		if err != nil || len(ran) != 2 || s.Stopped != report.Interrupted || len(s.Plans.NotRun) != 1 || s.Plans.NotRun[0].Plans != 1 {
			t.Errorf("%v: %d plans, stopped because of %q: %+v", err, len(ran), s.Stopped, s.Plans)
		}
	})
}

// Progress says how long it will take: by the pace, and at most what is left of the budget.
func TestProgressSaysHowLong(t *testing.T) {
	for _, test := range []struct {
		budget time.Duration
		want   []string
	}{
		{0, []string{"0 of 3 plans, 0 with findings", "1 of 3 plans, 0 with findings, 3 a minute, about 40s left", "2 of 3 plans, 0 with findings, 3 a minute, about 20s left", "3 of 3 plans, 0 with findings, 3 a minute"}},
		{50 * time.Second, []string{"0 of 3 plans, 0 with findings, about 50s left", "1 of 3 plans, 0 with findings, 3 a minute, about 30s left", "2 of 3 plans, 0 with findings, 3 a minute, about 10s left", "3 of 3 plans, 0 with findings, 3 a minute"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := explorerOf(&fakeRunner{takes: 20 * time.Second, shows: func(int, fault.Plan) []oracle.Violation { return nil }}, test.budget)
			var got []string
			e.Progress = func(p Progress) { got = append(got, p.String()) }
			if _, err := e.Run(t.Context(), mustParse(t, "crash after write 1", "crash after write 2", "crash after write 3")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", test.budget, diff)
			}
		})
	}
	if got := (Progress{Done: 40, Total: 400, Bad: 1, Took: 20 * time.Minute, Left: 3*time.Hour + 10*time.Second}).String(); got != "40 of 400 plans, 1 with findings, 2 a minute, about 3h0m left" {
		t.Errorf("got %q", got)
	}
}
