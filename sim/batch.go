// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"sync"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// batch is the plans of one call of run, of which several workers take one after the other.
type batch struct {
	order    []int // in which the first plans are begun; nil: that of plans
	until    []oracle.Name
	progress func(done, total, bad int)
	found    func(plan fault.Plan, o outcome) // may be nil
	stop     *stopper                         // may be nil
	joins    bool                             // plans may join earlier ones

	mu        sync.Mutex // guards what follows
	plans     []fault.Plan
	more      func() []fault.Plan // draws plans when all have begun; nil if there are no more
	outcomes  []outcome           // by plan; empty for plans that were not run
	next      int
	done, bad int
	enough    bool // an oracle of until was violated
	failure   error
	marks     []string // from which plans have continued without a finding
}

// take returns the next plan, if another one is to be run.
func (b *batch) take() (i int, plan fault.Plan, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure != nil || b.enough || b.stop.stopped() != "" {
		return 0, fault.Plan{}, false
	}
	if b.next >= len(b.plans) && b.more != nil {
		b.plans = append(slices.Clip(b.plans), b.more()...)
		b.outcomes = append(b.outcomes, make([]outcome, len(b.plans)-len(b.outcomes))...)
	}
	if b.next >= len(b.plans) {
		return 0, fault.Plan{}, false
	}
	i = b.next
	if i < len(b.order) {
		i = b.order[i]
	}
	b.next++
	return i, b.plans[i], true
}

// finish records the outcome of a plan, unless it was ended before there was one.
func (b *batch) finish(i int, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.unfinished {
		return
	}
	b.outcomes[i] = o
	b.done++
	if b.joins {
		b.marks = append(b.marks, o.Marks...)
	}
	if len(o.Violations) > 0 {
		b.bad++
		if b.found != nil {
			b.found(b.plans[i], o)
		}
	}
	b.enough = b.enough || violates(o, b.until...)
	b.progress(b.done, len(b.plans), b.bad)
}

// fail ends the batch.
func (b *batch) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failure = err
}

// newMarks returns the marks that a worker does not know.
func (b *batch) newMarks(w *worker) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	marks := b.marks[w.marks:]
	w.marks = len(b.marks)
	return marks
}

// run returns the plans that were to be run, those that were drawn and run, and their outcomes.
func (b *batch) run(planned int) ([]fault.Plan, []outcome) {
	plans, outcomes := slices.Clone(b.plans[:planned]), slices.Clone(b.outcomes[:planned])
	for i, o := range b.outcomes[planned:] {
		if o.Plan != "" {
			plans, outcomes = append(plans, b.plans[planned+i]), append(outcomes, o)
		}
	}
	return plans, outcomes
}
