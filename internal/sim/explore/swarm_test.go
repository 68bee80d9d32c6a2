// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// readsOfARun returns the faults of a run with n reads.
func readsOfARun(n int, allowed func(fault.Kind) bool) []fault.Fault {
	var places []fault.Place
	for i := range n {
		places = append(places, fault.Place{Point: fault.AtRead, At: i + 1})
	}
	return Faults(places, allowed)
}

// A swarm comes after the pairs. Its plans have several faults, differ from each other and with the
// seed, and are read back as they are printed.
func TestSwarm(t *testing.T) {
	swarm := func(c Choice, allowed func(fault.Kind) bool) []string {
		c.Orders = 4
		plans := c.Plans(readsOfARun(30, allowed))
		return texts(slices.DeleteFunc(plans, func(p fault.Plan) bool { return len(p.Faults) < fewestInSwarm }))
	}
	noRefusals := func(k fault.Kind) bool { return k != fault.RefuseRead }
	hundred := swarm(Choice{Swarm: 100, Pairs: 10}, all)
	sizes := map[int]int{}
	for _, text := range hundred {
		plan := mustParse(t, text)[0]
		sizes[len(plan.Faults)]++
		if plan.String() != text || !compatible(plan.Faults) || len(plan.Faults) > mostInSwarm {
			t.Errorf("%q is not a plan of a swarm", text)
		}
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(hundred)))); n != 100 || len(sizes) < 4 {
		t.Errorf("%d plans differ, with these numbers of faults: %v", n, sizes)
	}
	if diff := cmp.Diff(hundred, swarm(Choice{Swarm: 100}, all)); diff != "" {
		t.Errorf("without pairs, the same seed draws other plans:\n%s", diff)
	}
	if diff := cmp.Diff(hundred[:50], swarm(Choice{Swarm: 50}, all)); diff != "" {
		t.Errorf("a smaller swarm is not the beginning of a larger one:\n%s", diff)
	}
	if other := swarm(Choice{Swarm: 100, Seed: 7}, all); slices.ContainsFunc(other[:20], func(text string) bool { return slices.Contains(hundred[:20], text) }) {
		t.Error("another seed draws the same plans")
	}
	for _, text := range swarm(Choice{Swarm: 100}, noRefusals) {
		if mustParse(t, text)[0].Has(fault.RefuseRead) {
			t.Errorf("%q has a fault that is left out", text)
		}
	}
	many := Choice{Swarm: 10000}
	if few := many.Plans(readsOfARun(1, func(k fault.Kind) bool { return k != fault.PanicAtRead })); len(few) > 10000 {
		t.Errorf("%d plans", len(few))
	}
}

// The shards of a swarm without end have different plans, and together those of the whole swarm.
func TestShardsOfSwarm(t *testing.T) {
	whole := newSwarm(&Choice{Seed: 3, Orders: 4}, readsOfARun(30, all), nil)
	want := texts(whole.draw(60))
	var got []string
	for i := range 3 {
		part := newSwarm(&Choice{Seed: 3, Orders: 4}, readsOfARun(30, all), nil)
		part.part = Shard{index: i + 1, n: 3}
		for len(got) == 0 || part.next < whole.next {
			for _, p := range part.draw(1) {
				if number := part.seen[p.String()]; number < whole.next {
					got = append(got, p.String())
				}
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-whole +shards:\n%s", diff)
	}
}

// A swarm without end draws plans when all have begun, and ends with the budget.
func TestSwarmWithoutEnd(t *testing.T) {
	s := newSwarm(&Choice{Seed: 1, Orders: 4}, readsOfARun(30, all), nil)
	b := &batch{plans: make([]fault.Plan, 2), order: []int{1, 0}, outcomes: make([]Outcome, 2), progress: func(Progress) {}, known: map[string]bool{}, more: func() []fault.Plan { return s.draw(3) }}
	var taken []int
	for range 7 {
		i, plan, ok := b.take()
		if !ok || (len(plan.Faults) >= fewestInSwarm) != (i >= 2) {
			t.Fatalf("plan %d is %q, %t", i, plan, ok)
		}
		taken = append(taken, i)
		if i != 5 { // one that was ended before it had an outcome
			b.finish(i, Outcome{Plan: plan.String()})
		}
	}
	if diff := cmp.Diff([]int{1, 0, 2, 3, 4, 5, 6}, taken); diff != "" {
		t.Error(diff)
	}
	plans, outcomes := b.run(2)
	if len(plans) != 6 || len(outcomes) != 6 || plans[5].String() != outcomes[5].Plan {
		t.Errorf("run: %q", texts(plans))
	}
	b.stop = NewStopper(time.Time{})
	b.stop.Spend(Budget{name: "1ns", Time: 1}, time.Now())
	time.Sleep(time.Millisecond)
	if _, _, ok := b.take(); ok {
		t.Error("a plan was begun after the time of the budget")
	}
}
