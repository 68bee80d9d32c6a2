// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// An interrupt ends the exploration, not the process.
func TestInterrupt(t *testing.T) {
	s := explore.NewStopper(time.Time{})
	end := endAtInterrupt(s)
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(os.Interrupt); err != nil {
		t.Skipf("signals are not supported: %v", err)
	}
	for range 1000 {
		if s.Stopped() == report.Interrupted {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got := s.Stopped(); got != report.Interrupted {
		t.Errorf("got %q", got)
	}
	end()
	end()
}

// What was found before the time limit is reported, and how many plans were not run.
func TestTheTimeLimitLosesNothing(t *testing.T) {
	rings.Test(t, "simulates for a while")
	r := prepare(t, copyWorkload(), nil, ".")
	if r == nil {
		return // this is a worker
	}
	plans := mustParse(t, "occupy the name before write 1", "no fault", "crash after write 1")
	deadline := time.Now().Add(time.Hour)
	r.deadline = func() (time.Time, bool) { return deadline, true }
	r.explorer.Progress = func(p explore.Progress) {
		if p.Done == 2 { // the plan without a fault comes first
			r.explorer.Stop.End(report.TimeLimit)
		}
	}
	ran := r.run(t, plans)
	if r.simulation.Stopped != report.TimeLimit || len(ran) != 2 || ran[0].Order != 0 || ran[1].Order != 1 {
		t.Fatalf("%q: got %+v", r.simulation.Stopped, ran)
	}
	if !ran[0].Violates(oracle.ForeignUntouched) {
		t.Errorf("what was found is %v", ran[0].Violations)
	}
}
