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
