// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// An Explorer runs plans. The order in which plans end differs from run to run, so outcomes are kept
// by plan, and what a report shows does not depend on it.
type Explorer struct {
	Choice
	Start     func() (Runner, error)
	Parallel  func(plans int) int // how many runners so many plans have
	Places    []fault.Place       // of the run without faults; may be empty
	Allowed   func(fault.Kind) bool
	Until     []oracle.Name // when one of these is violated, no more plans are begun
	Repeat    int           // how often a plan is run again that shows something new: it may depend on timing
	OnlyFewer bool          // faults are left out of plans, and not replaced by milder ones

	Stop *Stopper // ends the exploration early; may be nil
	Rest *Stopper // ends making plans smaller; may be nil

	Known    map[string]bool // kinds of violations that were found before; may be nil
	Progress func(Progress)
	Found    func(plan fault.Plan, v oracle.Violation) // is called for each kind of violation; may be nil
	Again    func(plan fault.Plan) string              // the command that runs a plan again

	order func(plans []fault.Plan) []int // in which plans are begun; may be nil
	more  func() []fault.Plan            // draws plans when all have begun; may be nil
}

// Ran is a plan that was run, with its place in the list of all.
type Ran struct {
	Order int
	Plan  fault.Plan
	Outcome
}

// OrderOfReference is the place of the run without faults in the list of all plans, which is among
// the outcomes of the first shard only.
const OrderOfReference = -1

// Report returns what a report needs of the outcome of a plan.
func (e *Explorer) Report(r Ran) report.Outcome {
	return report.Outcome{
		Order: r.Order, Plan: r.Plan, Again: e.Again(r.Plan), Requests: r.Requests, Fired: r.Fired, Joined: r.Joined,
		Violations: r.Violations, Writes: r.Writes, Trace: r.Trace,
	}
}

// plansAtOnce is how many plans a swarm without end draws when all have begun.
const plansAtOnce = 256

// Explore runs those of all plans that are chosen, and what a swarm without end draws after them,
// until all have run or the time is over. Plans of a swarm without end follow the list, by their
// numbers. It says in the simulation what was not run and why.
func (e *Explorer) Explore(ctx context.Context, all []fault.Plan, s *report.Simulation) ([]Ran, error) {
	at := sitesOf(e.Places)
	places, reason := e.chosen(all, at)
	endless := newSwarm(&e.Choice, Faults(e.Places, e.Allowed), nil)
	endless.part = e.Shard
	of := *e
	of.order = func(plans []fault.Plan) []int { return telling(plans, at) }
	if e.Endless {
		of.more = func() []fault.Plan { return endless.draw(plansAtOnce) }
	}
	b := of.runBatch(ctx, pick(all, places))
	if b.failure != nil {
		return nil, b.failure
	}
	plans, outcomes := b.run(len(places))
	s.Stopped = cmp.Or(e.stopped(outcomes), reason)
	for _, p := range plans[len(places):] {
		places = append(places, len(all)+int(endless.seen[p.String()]))
	}
	var list []Ran
	ran := map[int]bool{}
	for i, o := range outcomes {
		if o.Plan != "" {
			ran[places[i]] = true
			list = append(list, Ran{places[i], plans[i], o})
		}
	}
	mine := e.Shard.of(all, at)
	s.Plans.NotRun = notRun(pick(all, mine), func(i int) bool { return ran[mine[i]] })
	if e.Endless && len(list) == 0 { // it has had no time
		s.Plans.NotRun = notRun(b.plans, func(int) bool { return false })
	}
	return list, nil
}

// pick returns the plans at some places of a list.
func pick(all []fault.Plan, places []int) []fault.Plan {
	plans := make([]fault.Plan, len(places))
	for i, place := range places {
		plans[i] = all[place]
	}
	return plans
}

// stopped returns why plans were not run; empty if all were, or a swarm without end has had time.
func (e *Explorer) stopped(outcomes []Outcome) string {
	reason := e.Stop.Stopped()
	switch {
	case !slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Plan == "" }):
		if !e.Endless || len(outcomes) > 0 && strings.HasPrefix(reason, report.Budget) {
			return ""
		}
		return reason
	case reason != "":
		return reason
	case len(e.Until) > 0 && slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Violates(e.Until...) }):
		return report.Enough
	}
	return report.Slow
}

// Run runs plans, all of them unless the explorer is to stop, and returns their outcomes in their order.
func (e *Explorer) Run(ctx context.Context, plans []fault.Plan) ([]Outcome, error) {
	b := e.runBatch(ctx, plans)
	return b.outcomes, b.failure
}

// runBatch runs plans, and those that are drawn when all have begun.
func (e *Explorer) runBatch(ctx context.Context, plans []fault.Plan) *batch {
	b := &batch{
		plans: plans, until: e.Until, begun: time.Now(), progress: e.Progress, found: e.Found, stop: e.Stop, outcomes: make([]Outcome, len(plans)), more: e.more, known: map[string]bool{},
	}
	maps.Copy(b.known, e.Known)
	if e.order != nil {
		b.order = e.order(plans)
	}
	b.report()
	var group sync.WaitGroup
	most := len(plans)
	if e.more != nil {
		most = math.MaxInt32
	}
	for range e.Parallel(most) {
		group.Go(func() { e.work(ctx, b) })
	}
	group.Wait()
	return b
}

// work runs plans of a batch in one runner, until there are no more.
func (e *Explorer) work(ctx context.Context, b *batch) {
	var r Runner
	defer func() {
		if r != nil {
			r.Stop()
		}
	}()
	for {
		if ctx.Err() != nil {
			e.Stop.End(report.Interrupted)
		}
		i, plan, ok := b.take()
		if !ok {
			return
		}
		var err error
		if r == nil {
			r, err = e.Start()
		}
		var o Outcome
		if err == nil {
			o, err = e.try(ctx, r, plan)
		}
		if err == nil && !o.Unfinished && b.learn(i, o) && e.Repeat > 0 {
			err = e.confirm(ctx, r, plan, &o)
		}
		if err != nil {
			b.fail(err)
			return
		}
		b.finish(i, o)
	}
}

// try runs a plan once. It takes no longer than the explorer allows.
func (e *Explorer) try(ctx context.Context, r Runner, plan fault.Plan) (Outcome, error) {
	within, cancel := e.Stop.Within(ctx)
	defer cancel()
	o, err := r.Run(within, plan)
	if err != nil {
		return o, fmt.Errorf("plan %q: %w", plan, err)
	}
	return o, nil
}

// confirm runs a plan again that has shown something, and says which of it was not seen each time:
// where time is real, what happens once may not happen again.
func (e *Explorer) confirm(ctx context.Context, r Runner, plan fault.Plan, o *Outcome) error {
	times, runs := map[oracle.Name]int{}, 0
	for runs < e.Repeat && e.Stop.Stopped() == "" {
		again, err := e.try(ctx, r, plan)
		if err != nil {
			return err
		}
		if again.Unfinished {
			break
		}
		runs++
		for _, v := range again.Violations {
			times[v.Oracle]++
		}
	}
	for i := range o.Violations {
		v := &o.Violations[i]
		switch n := min(times[v.Oracle], runs); {
		case n < runs:
			v.Text += fmt.Sprintf("\n(seen in %d of %d runs of the plan: it depends on timing)", n+1, runs+1)
		case runs < e.Repeat:
			v.Text += fmt.Sprintf("\n(there was no time to run the plan %d times, which shows whether it depends on timing)", e.Repeat+1)
		}
	}
	return nil
}
