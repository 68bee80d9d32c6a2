// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"slices"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// load is what a process has used of the processors, to find a loop that asks the API server for
// nothing, such as one that reads a stale cache again and again.
type load struct{ samples []sample }

type sample struct{ at, ran, starved time.Duration } // since the run began, and of the process

// add adds what the process has used so far. Processes that have ended do not count.
func (l *load) add(s sample) {
	if n := len(l.samples); n > 0 && s.ran < l.samples[n-1].ran {
		l.samples = nil
	}
	l.samples = append(l.samples, s)
}

// share returns which share of a processor the process has used in the last time, and which share of
// it other programs have left, at least a quarter; 0 and 1 if that is not known.
func (l *load) share(last time.Duration) (used, left float64) {
	n := len(l.samples)
	if n == 0 {
		return 0, 1
	}
	end := l.samples[n-1]
	i := slices.IndexFunc(l.samples, func(s sample) bool { return s.at >= end.at-last })
	begin := l.samples[i]
	passed := float64(end.at - begin.at)
	if passed < float64(last/2) || passed == 0 {
		return 0, 1
	}
	return float64(end.ran-begin.ran) / passed, max(1-float64(end.starved-begin.starved)/passed, 0.25)
}

// ran returns for how long the process has had a processor.
func (l *load) ran() time.Duration {
	if n := len(l.samples); n > 0 {
		return l.samples[n-1].ran
	}
	return 0
}

// A cost is what a run with a fault takes, as those without one show: they wait twice as long at each
// checkpoint.
type cost struct {
	took time.Duration
	ran  time.Duration // for so long, the operator has a processor
}

// parallel returns how many runs are under way at the same time on some processors, of which the
// operators are to have half: the cluster, the supervisors and other programs take the rest. Runs wait most
// of their time. Few are slow also if they wait, and many take memory, so that there are bounds.
func (c cost) parallel(processors int) int {
	least, most := min(16, 6*processors), min(32, 12*processors)
	if c.ran == 0 {
		return least
	}
	return min(max(int(time.Duration(processors)*c.took/(2*c.ran)), least), most)
}

// What an idle operator uses of a processor at most in the run without faults, and what shows a loop
// if it does. A loop has less than all of what other programs have left where the machine is a virtual
// one, whose host has other work, too.
const (
	restingShare  = 0.2
	spinningShare = 0.5
)

// look notes what the process has used.
func (r *runner) look() {
	ran, starved := r.process.Used()
	r.history.clock.look(starved, lookEvery)
	r.boundary.calm.look(ran+starved, lookEvery)
	r.load.add(sample{time.Since(r.history.clock.begun), ran, starved})
}

// spins reports an operator that asks for nothing new and keeps a processor busy, although it rests
// without faults.
func (r *runner) spins(quiet time.Duration) {
	share, left := r.load.share(quiet)
	if r.busiest = max(r.busiest, share); r.resting && share >= spinningShare*left {
		r.violate(oracle.BecomesIdle, len(r.checkpoints), fmt.Sprintf("the operator has asked for nothing new for %s and uses %.0f %% of a processor: it works in a loop without requests",
			quiet.Truncate(100*time.Millisecond), 100*share))
	}
}
