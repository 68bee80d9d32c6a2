// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A batch is the plans of one call of run, of which several runners take one after the other.
type batch struct {
	order    []int // in which the first plans are begun; nil: that of plans
	until    []oracle.Name
	progress func(Progress)
	begun    time.Time
	found    func(plan fault.Plan, v oracle.Violation) // each kind of violation; may be nil
	stop     *Stopper                                  // may be nil

	mu        sync.Mutex // guards what follows
	plans     []fault.Plan
	more      func() []fault.Plan // draws plans when all have begun; nil if there are no more
	outcomes  []Outcome           // by plan; empty for plans that were not run
	next      int
	done, bad int
	enough    bool // an oracle of until was violated
	failure   error
	known     map[string]bool // kinds of violations
}

// take returns the next plan, if another one is to be run.
func (b *batch) take() (i int, plan fault.Plan, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure != nil || b.enough || b.stop.Stopped() != "" {
		return 0, fault.Plan{}, false
	}
	if b.next >= len(b.plans) && b.more != nil {
		b.plans = append(slices.Clip(b.plans), b.more()...)
		b.outcomes = append(b.outcomes, make([]Outcome, len(b.plans)-len(b.outcomes))...)
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
func (b *batch) finish(i int, o Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.Unfinished {
		return
	}
	b.outcomes[i] = o
	b.done++
	if len(o.Violations) > 0 {
		b.bad++
	}
	b.enough = b.enough || o.Violates(b.until...)
	b.report()
}

// fail ends the batch.
func (b *batch) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failure = err
}

// learn takes what an outcome shows, as soon as it does: other runners do not repeat a plan for it. It
// reports whether any of it is new.
func (b *batch) learn(i int, o Outcome) (isNew bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, v := range o.Violations {
		key := report.Key(v, o.write(n))
		if b.known[key] {
			continue
		}
		b.known[key], isNew = true, true
		if b.found != nil {
			b.found(b.plans[i], v)
		}
	}
	return isNew
}

// run returns the plans that were to be run, those that were drawn and run, and their outcomes.
func (b *batch) run(planned int) ([]fault.Plan, []Outcome) {
	plans, outcomes := slices.Clone(b.plans[:planned]), slices.Clone(b.outcomes[:planned])
	for i, o := range b.outcomes[planned:] {
		if o.Plan != "" {
			plans, outcomes = append(plans, b.plans[planned+i]), append(outcomes, o)
		}
	}
	return plans, outcomes
}
