// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// plans lists what is run: the run without faults in other orders, all single faults, and pairs of
// faults chosen by the seed.
func (r *reference) plans(s *settings) []fault.Plan {
	var list []fault.Plan
	for seed := uint64(1); seed <= learningRuns; seed++ {
		list = append(list, fault.Plan{Seed: seed})
	}
	singles := slices.DeleteFunc(r.singles(), func(f fault.Fault) bool {
		_, skipped := s.skipped[f.Kind]
		return skipped
	})
	for _, f := range singles {
		list = append(list, fault.Plan{Faults: []fault.Fault{f}})
	}
	if len(singles) < 2 {
		return list
	}
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

// explorer runs plans in workers.
type explorer struct {
	test       string
	simulation int
	progress   func(done, total, bad int)
	until      []oracle.Name // when one of these is violated, no more plans are begun
}

// run returns the outcomes of all plans, in their order.
func (e *explorer) run(plans []fault.Plan) ([]outcome, error) {
	outcomes := make([]outcome, len(plans))
	var mu sync.Mutex
	var failure error
	next, done, bad, enough := 0, 0, 0, false
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next >= len(plans) || failure != nil || enough {
			return 0, false
		}
		next++
		return next - 1, true
	}
	finish := func(i int, o outcome) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[i] = o
		done++
		if len(o.Violations) > 0 {
			bad++
		}
		enough = enough || slices.ContainsFunc(o.Violations, func(v oracle.Violation) bool { return slices.Contains(e.until, v.Oracle) })
		e.progress(done, len(plans), bad)
	}
	var group sync.WaitGroup
	for range workers(len(plans)) {
		group.Go(func() {
			var w *worker
			defer func() {
				if w != nil {
					w.stop()
				}
			}()
			for {
				i, ok := take()
				if !ok {
					return
				}
				if w == nil {
					started, err := startWorker(e.test, e.simulation)
					if err != nil {
						mu.Lock()
						failure = err
						mu.Unlock()
						return
					}
					w = started
				}
				o, alive := w.run(plans[i].String())
				if !alive || slices.ContainsFunc(o.Violations, func(v oracle.Violation) bool { return v.Oracle == oracle.NoGoroutineLeft }) {
					w.stop()
					w = nil
				}
				finish(i, o)
			}
		})
	}
	group.Wait()
	return outcomes, failure
}

// shrink returns the smallest plan that still violates the same oracle: a pair whose one fault is
// enough becomes that fault, and an order that does not matter goes.
func (e *explorer) shrink(plan fault.Plan, violated oracle.Name) (fault.Plan, outcome, bool) {
	var smaller []fault.Plan
	for _, f := range plan.Faults {
		if len(plan.Faults) > 1 {
			smaller = append(smaller, fault.Plan{Faults: []fault.Fault{f}}, fault.Plan{Faults: []fault.Fault{f}, Seed: plan.Seed})
		}
	}
	if plan.Seed != 0 {
		smaller = append(smaller, fault.Plan{Faults: plan.Faults})
	}
	if len(smaller) == 0 {
		return plan, outcome{}, false
	}
	quiet := *e
	quiet.progress, quiet.until = func(int, int, int) {}, nil
	outcomes, err := quiet.run(smaller)
	if err != nil {
		return plan, outcome{}, false
	}
	for i, o := range outcomes {
		if slices.ContainsFunc(o.Violations, func(v oracle.Violation) bool { return v.Oracle == violated }) {
			return smaller[i], o, true
		}
	}
	return plan, outcome{}, false
}
