// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// batch is the plans of one call of run, of which several workers take one after the other.
type batch struct {
	plans    []fault.Plan
	order    []int // in which the plans are begun; nil: that of plans
	until    []oracle.Name
	progress func(done, total, bad int)
	found    func(plan fault.Plan, o outcome) // may be nil
	stop     *stopper                         // may be nil
	joins    bool                             // plans may join earlier ones

	mu        sync.Mutex // guards what follows
	outcomes  []outcome  // by plan; empty for plans that were not run
	next      int
	done, bad int
	enough    bool // an oracle of until was violated
	failure   error
	marks     []string // from which plans have continued without a finding
}

// take returns the next plan, if another one is to be run.
func (b *batch) take() (i int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next >= len(b.plans) || b.failure != nil || b.enough || b.stop.stopped() != "" {
		return 0, false
	}
	b.next++
	if b.order != nil {
		return b.order[b.next-1], true
	}
	return b.next - 1, true
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
