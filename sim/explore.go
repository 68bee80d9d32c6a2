// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// plans lists what is run: transitions, some of them with a fault, or the script with faults.
func (r *Report) plans(t *testing.T, ref *reference) ([]fault.Plan, error) {
	if r.settings.transitions == nil {
		return ref.plans(r.settings), nil
	}
	if r.settings.only {
		return nil, nil
	}
	list, err := ref.transitions(r.crds, r.settings.transitions)
	if err != nil || r.settings.faults == 0 {
		return list, err
	}
	all := slices.Clone(list)
	for i, p := range list {
		more, err := r.withFaults(t, ref, p, i*r.settings.faults)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// withFaults returns plans of a transition with one fault each, from a place on in the order in
// which faults are tried.
func (r *Report) withFaults(t *testing.T, ref *reference, p fault.Plan, from int) ([]fault.Plan, error) {
	c, err := ref.change(r.crds, p.Transition)
	if err != nil {
		return nil, err
	}
	of := *r.workload
	of.course = &course{change: c}
	first, err := runOnce(t, &of, r.crds, fault.Plan{}, nil, r.settings.silent())
	if err != nil || first.ends() {
		return nil, err
	}
	before := map[string]bool{}
	for _, f := range ref.singles() {
		before[f.String()] = true
	}
	var singles []fault.Plan
	for _, f := range first.asReference().plans(r.settings) {
		if len(f.Faults) == 1 && !before[f.Faults[0].String()] {
			singles = append(singles, f)
		}
	}
	var list []fault.Plan
	order := telling(singles, nil)
	for i := range min(r.settings.faults, len(order)) {
		with := singles[order[(from+i)%len(order)]]
		list = append(list, fault.Plan{Transition: p.Transition, Faults: with.Faults})
	}
	return list, nil
}

// plans lists what is run: the run without faults in other orders, all single faults, and pairs and
// swarms of faults chosen by the seed. A swarm without end draws its plans later.
func (r *reference) plans(s *settings) []fault.Plan {
	var list []fault.Plan
	for seed := uint64(1); seed <= learningRuns; seed++ {
		list = append(list, fault.Plan{Seed: seed})
	}
	singles := r.allowed(s)
	if !s.only {
		for _, f := range singles {
			list = append(list, fault.Plan{Faults: []fault.Fault{f}})
		}
		list = append(list, pairsOf(singles, s)...)
	}
	return append(list, newSwarm(s.seed, singles, list).draw(s.swarm)...)
}

// allowed returns the single faults that the settings do not leave out.
func (r *reference) allowed(s *settings) []fault.Fault {
	return slices.DeleteFunc(r.singles(), func(f fault.Fault) bool {
		_, skipped := s.skipped[f.Kind]
		return skipped || f.Kind == fault.RestartInPast && !s.stale
	})
}

// pairsOf returns pairs of faults, chosen by the seed.
func pairsOf(singles []fault.Fault, s *settings) []fault.Plan {
	var list []fault.Plan
	if len(singles) < 2 {
		return nil
	}
	// There may be fewer compatible pairs than are asked for, so the tries are bounded.
	random := rand.New(rand.NewPCG(s.seed, 0x2545f4914f6cdd1d))
	seen := map[string]bool{}
	for tries := 0; len(seen) < s.pairs && tries < 20*s.pairs; tries++ {
		a, b := singles[random.IntN(len(singles))], singles[random.IntN(len(singles))]
		if !fault.Compatible(a, b) {
			continue
		}
		plan := fault.Plan{Faults: []fault.Fault{a, b}, Seed: uint64(random.IntN(seedsOfPairs))}
		if text := plan.String(); !seen[text] {
			seen[text] = true
			list = append(list, plan)
		}
	}
	return list
}

// seedsOfPairs is in how many orders of what can happen in any order pairs of faults are tried.
const seedsOfPairs = 4

// explorer runs plans in workers. The order in which plans end differs from run to run, so outcomes
// are kept by plan, and what a report shows does not depend on it.
type explorer struct {
	test       string
	simulation int
	crds       string // as workers read them
	progress   func(done, total, bad int)
	until      []oracle.Name                    // when one of these is violated, no more plans are begun
	found      func(plan fault.Plan, o outcome) // is called for each plan that violates an oracle; may be nil
	stop       *stopper                         // ends the exploration early; may be nil
	order      func(plans []fault.Plan) []int   // in which plans are begun; may be nil
	joins      bool                             // plans may join earlier ones
	more       func() []fault.Plan              // draws plans when all have begun; may be nil

	// What shrinking needs to know of the run without faults. Both may be empty.
	places  []fault.Place
	skipped map[fault.Kind]string // kinds that no plan may have
}

// run returns the outcomes of all plans, in their order. Those of plans that were not run are empty.
func (e *explorer) run(plans []fault.Plan) ([]outcome, error) {
	b := e.runBatch(plans)
	return b.outcomes, b.failure
}

// runBatch runs plans, and those that are drawn when all have begun.
func (e *explorer) runBatch(plans []fault.Plan) *batch {
	b := &batch{
		plans: plans, joins: e.joins, until: e.until, progress: e.progress, found: e.found, stop: e.stop, outcomes: make([]outcome, len(plans)), more: e.more,
	}
	if e.order != nil {
		b.order = e.order(plans)
	}
	var group sync.WaitGroup
	most := len(plans)
	if e.more != nil {
		most = math.MaxInt32
	}
	for range workers(most) {
		group.Go(func() { e.work(b) })
	}
	group.Wait()
	return b
}

// work runs plans of a batch in one worker after the other, until there are no more. A worker that
// a plan has ended, or that says so, runs no other plan.
func (e *explorer) work(b *batch) {
	var w *worker
	defer func() {
		if w != nil {
			w.stop()
		}
	}()
	for {
		i, plan, ok := b.take()
		if !ok {
			return
		}
		if w == nil {
			started, err := startWorker(e.test, e.simulation, e.crds)
			if err != nil {
				b.fail(err)
				return
			}
			w = started
		}
		o, alive := w.run(plan.String(), b.newMarks(w), e.stop.patience())
		if !alive || o.Last {
			w.stop()
			w = nil
		}
		b.finish(i, o)
	}
}

// violates reports whether a plan has violated one of the oracles.
func violates(o outcome, oracles ...oracle.Name) bool {
	return slices.ContainsFunc(o.Violations, func(v oracle.Violation) bool { return slices.Contains(oracles, v.Oracle) })
}
