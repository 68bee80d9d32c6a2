// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/rand/v2"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A Choice says which plans there are, and which of them are run.
type Choice struct {
	Orders int    // of what can happen in any order; 1 where time is real
	Pairs  int    // plans of two faults
	Swarm  int    // plans of many faults
	Only   bool   // there are no plans but those of the swarm
	Seed   uint64 // draws the pairs and the swarm

	Endless bool // the swarm draws plans until the time of the budget is over
	Sample  int  // how many plans a sample has; zero: all are run
	Shard   Shard
	Budget  Budget
}

// Faults returns the single faults that can strike at places, of the kinds that are allowed, in a
// fixed order.
func Faults(places []fault.Place, allowed func(fault.Kind) bool) []fault.Fault {
	var list []fault.Fault
	for i := range places {
		for _, f := range places[i].Faults() {
			if allowed(f.Kind) {
				list = append(list, f)
			}
		}
	}
	return list
}

// Plans lists the plans that there are: the run without faults in other orders, all single faults,
// and pairs and swarms of faults chosen by the seed. A swarm without end draws its plans later.
func (c *Choice) Plans(singles []fault.Fault) []fault.Plan {
	var list []fault.Plan
	for seed := uint64(1); seed < uint64(c.Orders); seed++ {
		list = append(list, fault.Plan{Seed: seed})
	}
	if !c.Only {
		for _, f := range singles {
			list = append(list, fault.Plan{Faults: []fault.Fault{f}})
		}
		list = append(list, c.pairs(singles)...)
	}
	return append(list, newSwarm(c, singles, list).draw(c.Swarm)...)
}

// pairs returns pairs of faults, chosen by the seed.
func (c *Choice) pairs(singles []fault.Fault) []fault.Plan {
	var list []fault.Plan
	if len(singles) < 2 {
		return nil
	}
	// There may be fewer compatible pairs than are asked for, so the tries are bounded.
	random := rand.New(rand.NewPCG(c.Seed, 0x2545f4914f6cdd1d))
	seen := map[string]bool{}
	for tries := 0; len(seen) < c.Pairs && tries < 20*c.Pairs; tries++ {
		a, b := singles[random.IntN(len(singles))], singles[random.IntN(len(singles))]
		if !fault.Compatible(a, b) {
			continue
		}
		plan := fault.Plan{Faults: []fault.Fault{a, b}, Seed: uint64(random.IntN(max(1, c.Orders)))}
		if text := plan.String(); !seen[text] {
			seen[text] = true
			list = append(list, plan)
		}
	}
	return list
}

// chosen returns which of the plans are to be run, in order, and why others of the shard are not,
// if there are any.
func (c *Choice) chosen(all []fault.Plan, at sites) (places []int, reason string) {
	mine := c.Shard.of(all, at)
	if c.Sample > 0 && c.Shard == (Shard{}) {
		if places = sample(all, c.Sample); len(places) < len(mine) {
			reason = report.Sample
		}
		return places, reason
	}
	inBudget := c.Budget.of(all, at)
	places = slices.DeleteFunc(slices.Clone(mine), func(i int) bool { _, ok := slices.BinarySearch(inBudget, i); return !ok })
	if len(places) < len(mine) {
		reason = report.Budget + c.Budget.String()
	}
	return places, reason
}
