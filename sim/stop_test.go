// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// An interrupt ends the exploration, not the process, and loses nothing that was found.
func TestInterrupt(t *testing.T) {
	rings.Test(t, "simulates for a while")
	r := prepare(t, copyWorkload(), nil, ".")
	if r == nil {
		return // this is a worker
	}
	if runtime.GOOS == "windows" {
		t.Skip("a process can't interrupt itself")
	}
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r.explorer.Progress = func(progress explore.Progress) {
		if progress.Done != 1 {
			return
		}
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		defer signal.Stop(interrupts)
		if err := p.Signal(os.Interrupt); err != nil {
			t.Error(err)
			return
		}
		<-interrupts
	}
	plans := make([]fault.Plan, 200)
	if ran := r.run(t, plans); len(ran) == 0 || len(ran) == len(plans) || r.simulation.Stopped != report.Interrupted {
		t.Errorf("%d plans were run, stopped because of %q", len(ran), r.simulation.Stopped)
	}
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
