// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"math/rand/v2"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// pairsOf returns plans of two faults that are compatible, chosen by a seed from those of plans with
// one: n of them, or fewer if there are not as many.
func pairsOf(plans []fault.Plan, n int, seed uint64) []fault.Plan {
	if len(plans) < 2 {
		return nil
	}
	var pairs []fault.Plan
	random, seen := rand.New(rand.NewPCG(seed, 0x2545f4914f6cdd1d)), map[[2]int]bool{}
	for tries := 0; len(pairs) < n && tries < 20*n; tries++ {
		i, j := random.IntN(len(plans)), random.IntN(len(plans))
		a, b := plans[i].Faults[0], plans[j].Faults[0]
		if pair := [2]int{min(i, j), max(i, j)}; !seen[pair] && fault.Compatible(a, b) {
			seen[pair] = true
			pairs = append(pairs, fault.Plan{Faults: []fault.Fault{a, b}})
		}
	}
	return pairs
}

// singles runs the faults of a plan that has several, each alone, unless it was run: a plan with one
// fault that shows the same explains it better.
func (e *explorer) singles(ctx context.Context, order int, t task) error {
	if t.change != nil || len(t.plan.Faults) < 2 {
		return nil
	}
	for _, f := range t.plan.Faults {
		single := task{plan: fault.Plan{Faults: []fault.Fault{f}}}
		if !e.begin(single) {
			continue
		}
		e.mu.Lock()
		e.alone++
		e.mu.Unlock()
		if err := e.one(ctx, order, single); err != nil {
			return err
		}
	}
	return nil
}

// begin reports whether a task was not begun before.
func (e *explorer) begin(t task) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun[t.String()] {
		return false
	}
	e.begun[t.String()] = true
	return true
}

// comesAfter reports whether a fault strikes after the request at which it does.
func comesAfter(k fault.Kind) bool {
	switch k {
	case fault.CrashAfterWrite, fault.LoseWriteAnswer, fault.Recreate, fault.DeleteAndCreate, fault.Withhold, fault.WipeStatus:
		return true
	}
	return false
}

// prevents reports whether a request does not have its effect at which a fault strikes.
func prevents(k fault.Kind) bool {
	return k == fault.CrashBeforeWrite || k == fault.RefuseWrite || k == fault.RefuseRead
}

// striking returns those of the faults at one request that strike at it, by their indexes in the plan:
// those that come before it until one prevents it, and if none does, those that come after it.
func striking(p fault.Plan, due []int) []int {
	var before, after []int
	for _, i := range due {
		k := p.Faults[i].Kind
		if comesAfter(k) {
			after = append(after, i)
			continue
		}
		before = append(before, i)
		if prevents(k) {
			return before
		}
	}
	return append(before, after...)
}
