// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// TestMatrix prints the matrix of docs/external.md. It runs the plans of TestSurvivesEverything,
// so it has to be asked for, in a way that the workers of the simulator see:
//
//	MATRIX=1 go test ./external -run Matrix -pairs 5000 -v -timeout 8h
//
// To run one class, add it: -run 'Matrix/token_'.
func TestMatrix(t *testing.T) {
	if os.Getenv("MATRIX") == "" {
		t.Skip("prints a table for a page when asked with MATRIX=1; TestSurvivesEverything runs the plans")
	}
	table := []string{
		"| identity | operator | plans | ok | duplicates | leaks | stuck | other |",
		"|---|---|---|---|---|---|---|---|",
	}
	for _, class := range classes() {
		type row struct {
			name string
			life life
			run  func(mgr ctrl.Manager, p *sim.Process) error
		}
		rows := []row{{"package external", whole, class.operator}, {"by hand", plain, class.byHand}}
		if class.system.Identity == sim.IdentityNone {
			rows = append(rows, row{"package external, without the person", unattended, class.operator})
		}
		for _, r := range rows {
			t.Run(class.name+" "+r.name, func(t *testing.T) {
				class.life = r.life
				if report := sim.Explore(t, class.workload(r.run), sim.WithPairs(*pairs)); report != nil && !t.Failed() {
					for _, f := range report.Findings {
						t.Logf("%s, in %d plans, such as %s", strings.SplitN(f.Violation.String(), "\n", 2)[0], f.Plans, f.Plan)
					}
					line := fmt.Sprintf("| %s | %s | %s |", class.name, r.name, countPlans(report))
					t.Log(line) // a run that is ended early has shown what it has done
					table = append(table, line)
				}
			})
		}
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

// countPlans returns the numbers of a row. A plan that shows a duplicate or a leak counts for nothing
// else, because what it does besides has the same cause.
func countPlans(r *sim.Report) string {
	var ok, duplicates, leaks, stuck, other int
	for _, plan := range r.Plans {
		violated := r.Violated(plan)
		any := func(oracles ...oracle.Name) bool {
			return slices.ContainsFunc(oracles, func(o oracle.Name) bool { return slices.Contains(violated, o) })
		}
		duplicate, leak := any(oracle.OneExternal), any(oracle.NoLeak, oracle.ScriptRuns)
		if duplicate {
			duplicates++
		}
		if leak {
			leaks++
		}
		switch {
		case len(violated) == 0:
			ok++
		case duplicate || leak:
		case any(oracle.SameEnd, oracle.BecomesIdle, oracle.BoundedRequests, oracle.EndsWell, oracle.SaysWhy):
			stuck++
		default:
			other++
		}
	}
	return fmt.Sprintf("%d | %d | %d | %d | %d | %d", len(r.Plans), ok, duplicates, leaks, stuck, other)
}

// The plans find what package external prevents: the reconciler that guides show, and each mistake
// that this package could have.
func TestMistakesAreFound(t *testing.T) {
	rings.Test(t, "simulates")
	all := classes()
	name, token, tag, none := all[0], all[1], all[2], all[3]
	tag.lagging = false // only Find is stale
	name.life, token.life = plain, whole
	harm := []oracle.Name{oracle.OneExternal, oracle.NoLeak, oracle.ScriptRuns}
	for _, tt := range []struct {
		name   string
		class  identityClass
		wrong  func(mgr ctrl.Manager, p *sim.Process) error
		caught []oracle.Name
	}{
		{"by hand, name", name, name.byHand, append(harm, oracle.SameEnd)},
		{"by hand, token", token, token.byHand, harm}, // a deletion during the creation, without a fault
		{"by hand, none", none, none.byHand, harm},
		{"token", token, token.mistaken(external.AnotherToken), harm},
		{"intent", tag, tag.mistaken(external.IntentAfterCreate), append(harm, oracle.FinalizerFirst)},
		{"tag", tag, tag.mistaken(external.BelievesReads), harm},
		{"reads", token, token.mistaken(external.BelievesReads), append(harm, oracle.BoundedRequests)},
		{"deletion by token", token, token.mistaken(external.DeletesOnlyKnown), harm},
		{"deletion by name", all[0], all[0].mistaken(external.NoWait), harm},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !slices.Contains([]string{"by hand, name", "by hand, token", "intent"}, tt.name) {
				rings.Explore(t, "takes a while")
			}
			report := sim.Explore(t, tt.class.workload(tt.wrong), sim.WithStopOn(tt.caught...))
			if report == nil {
				return
			}
			for _, f := range report.Findings {
				if slices.Contains(tt.caught, f.Violation.Oracle) {
					t.Logf("%s: with %s, after %d plans", f.Violation.Oracle, f.Plan, len(report.Plans))
					return
				}
			}
			t.Errorf("nothing was found in %d plans", len(report.Plans))
			for _, f := range report.Findings {
				t.Logf("found: %s, with %s", f.Violation, f.Plan)
			}
		})
	}
}

func (c identityClass) mistaken(m external.Mistake) func(mgr ctrl.Manager, p *sim.Process) error {
	return func(mgr ctrl.Manager, p *sim.Process) error {
		return c.complete(mgr, p, func(name string, connector external.Connector[*Depot], o external.Options[*Depot]) step.Step[*Depot] {
			return external.NewWrong(name, connector, o, m)
		})
	}
}

// Where nothing identifies a resource, a person has to look if the process, or the answer, was
// lost between the intent and the result, and in no other case.
func TestOnlyALostResultNeedsAPerson(t *testing.T) {
	rings.Test(t, "simulates")
	none := classes()[3]
	none.life = unattended
	for name, tt := range map[string]struct {
		operator func(mgr ctrl.Manager, p *sim.Process) error
		right    bool
	}{
		"right":     {none.operator, true},
		"no memory": {none.mistaken(external.NoMemory), false},
	} {
		t.Run(name, func(t *testing.T) {
			if !tt.right {
				rings.Explore(t, "takes a minute")
			}
			report := sim.Explore(t, none.workload(tt.operator), sim.WithSample(15))
			if report == nil {
				return
			}
			asks, needless := 0, 0
			for _, plan := range report.Plans {
				switch violated := report.Violated(plan); {
				case len(violated) == 0:
				case losesResult(plan):
					asks++
				default:
					needless++
					if tt.right {
						t.Errorf("%v with %s", violated, plan)
					}
				}
			}
			t.Logf("%d plans: %d need a person, %d more would not have to", len(report.Plans), asks, needless)
			if asks == 0 || !tt.right && needless == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

// losesResult reports whether a plan ends a process, or loses the answer to a call.
func losesResult(plan fault.Plan) bool {
	return slices.ContainsFunc(plan.Faults, func(f fault.Fault) bool {
		switch f.Kind {
		case fault.CrashBeforeWrite, fault.CrashAfterWrite, fault.LandLate, fault.StopAtWrite, fault.RestartInPast, fault.PanicAtWrite, fault.SecondLeader,
			fault.CrashBeforeCall, fault.CrashAfterCall, fault.CrashInsideCall, fault.LoseCallAnswer, fault.PanicAtCall, fault.HangCall, fault.SlowCall: // that is given up
			return true
		}
		return false
	})
}
