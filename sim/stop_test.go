// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// Plans are begun until there is only the time left that the report needs, and none may take longer
// than half of that.
func TestTimeLimit(t *testing.T) {
	for limit, margin := range map[time.Duration]time.Duration{
		10 * time.Minute: time.Minute, time.Hour: time.Minute, time.Minute: 6 * time.Second, 10 * time.Second: 2 * time.Second, 2 * time.Second: time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStopper(time.Now().Add(limit))
			if got, want := s.patience(), min(planTime, limit-margin/2); got != want {
				t.Errorf("%s: a plan may take %s, want %s", limit, got, want)
			}
			time.Sleep(limit - margin - time.Nanosecond)
			if got := s.stopped(); got != "" {
				t.Errorf("%s: stopped too early: %s", limit, got)
			}
			time.Sleep(time.Nanosecond)
			if got := s.stopped(); got != report.TimeLimit {
				t.Errorf("%s: got %q", limit, got)
			}
			if got := s.patience(); got != margin/2 {
				t.Errorf("%s: a plan that runs may take %s", limit, got)
			}
			time.Sleep(margin)
			if got := s.patience(); got != 0 {
				t.Errorf("%s: a plan that runs may take %s after the end", limit, got)
			}
		})
	}
	for _, s := range []*stopper{nil, newStopper(time.Time{})} {
		if s.stopped() != "" || s.patience() != planTime {
			t.Error("a test without a time limit has one")
		}
	}
}

// An interrupt ends the exploration, not the process.
func TestInterrupt(t *testing.T) {
	s := newStopper(time.Time{})
	end := s.onInterrupt()
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(os.Interrupt); err != nil {
		t.Skipf("signals are not supported: %v", err)
	}
	for range 1000 {
		if s.stopped() == report.Interrupted {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got := s.stopped(); got != report.Interrupted {
		t.Errorf("got %q", got)
	}
	end()
	end()
}

// A batch that is stopped begins no more plans, and those that are ended for it count as not run.
func TestBatchIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found []string
		b := &batch{
			plans: make([]fault.Plan, 5), outcomes: make([]outcome, 5), order: []int{4, 3, 2, 1, 0}, progress: func(int, int, int) {},
			stop: newStopper(time.Now().Add(10 * time.Second)), found: func(_ fault.Plan, o outcome) { found = append(found, o.Plan) },
		}
		first, _, _ := b.take()
		second, _, _ := b.take()
		if first != 4 || second != 3 {
			t.Errorf("plans %d and %d were begun, want 4 and 3", first, second)
		}
		b.finish(4, outcome{Plan: "x", Violations: []oracle.Violation{violation(oracle.NoLeak, "a")}})
		time.Sleep(8 * time.Second)
		if i, _, ok := b.take(); ok {
			t.Errorf("plan %d was begun", i)
		}
		b.finish(3, outcome{unfinished: true})
		if b.done != 1 || b.outcomes[3].Plan != "" || len(found) != 1 {
			t.Errorf("%d plans are done, found %v", b.done, found)
		}
	})
}

// What was found before the time limit is reported, and how many plans were not run.
func TestTheTimeLimitLosesNothing(t *testing.T) {
	rings.Test(t, "simulates for a while")
	r := prepare(t, copyWorkload(), nil, ".")
	if r == nil {
		return // this is a worker
	}
	plans := mustParse(t, "occupy the name before write 1", "no fault", "crash after write 1")
	r.explorer.found = nil
	deadline := time.Now().Add(time.Hour)
	r.deadline = func() (time.Time, bool) { return deadline, true }
	r.explorer.progress = func(done, _, _ int) {
		if done == 2 { // the plan without a fault comes first
			r.explorer.stop.mu.Lock()
			r.explorer.stop.reason = report.TimeLimit
			r.explorer.stop.mu.Unlock()
		}
	}
	_, outcomes := r.run(t, plans)
	if r.simulation.Stopped != report.TimeLimit || outcomes[0].Plan == "" || outcomes[1].Plan == "" || outcomes[2].Plan != "" {
		t.Errorf("%q: got %+v", r.simulation.Stopped, outcomes)
	}
	if !violates(outcomes[0], oracle.ForeignUntouched) {
		t.Errorf("what was found is %v", outcomes[0].Violations)
	}
}

// When the time is over, findings keep the plans that they have.
func TestNothingIsMadeSmallerAfterTheTimeLimit(t *testing.T) {
	e := &explorer{stop: &stopper{reason: report.TimeLimit}}
	plan := mustParse(t, "seed 1; occupy the name before write 1; crash after write 2")[0]
	if _, _, simpler := e.shrink(plan, report.Finding{Oracle: oracle.SameEnd}); simpler {
		t.Error("a plan was run")
	}
}
