// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// runner runs plans in one worker after the other. A worker that a plan has ended, or that says so,
// runs no other plan.
type runner struct {
	*simulated
	worker *worker
}

// simulated is which simulation workers run.
type simulated struct {
	test   string
	number int
	crds   string // as workers read them

	mu    sync.Mutex // guards what follows
	joins bool       // plans may join earlier ones
	marks []string   // from which plans have continued without a finding
}

func (s *simulated) start() (explore.Runner, error) { return &runner{simulated: s}, nil }

// join lets plans join earlier ones from now on, or no more.
func (s *simulated) join(joins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joins, s.marks = joins, nil
}

// Run implements [explore.Runner].
func (r *runner) Run(ctx context.Context, plan fault.Plan) (explore.Outcome, error) {
	if r.worker == nil {
		w, err := startWorker(r.test, r.number, r.crds)
		if err != nil {
			return explore.Outcome{}, err
		}
		r.worker = w
	}
	patience := planTime
	if deadline, ok := ctx.Deadline(); ok {
		patience = max(0, min(planTime, time.Until(deadline)))
	}
	a, alive := r.worker.run(plan.String(), r.newMarks(), patience)
	if !alive || a.Last {
		r.Stop()
		r.worker = nil
	}
	r.add(a.Marks)
	return a.Outcome, nil
}

// Stop implements [explore.Runner].
func (r *runner) Stop() {
	if r.worker != nil {
		r.worker.stop()
	}
}

// newMarks returns the marks that the worker does not know.
func (r *runner) newMarks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks := r.marks[r.worker.marks:]
	r.worker.marks = len(r.marks)
	return marks
}

func (r *runner) add(marks []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.joins {
		r.marks = append(r.marks, marks...)
	}
}

// runners is how many plans are run at the same time: one for each processor that the test may use.
func runners(plans int) int { return max(1, min(runtime.GOMAXPROCS(0), (plans+19)/20)) }
