// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// reads returns a run with n reads.
func readsOfARun(n int) *reference {
	r := &reference{}
	for i := range n {
		r.places = append(r.places, fault.Place{Point: fault.AtRead, At: i + 1})
	}
	return r
}

// A swarm comes after the pairs. Its plans have several faults, differ from each other and with the
// seed, and are read back as they are printed.
func TestSwarm(t *testing.T) {
	swarm := func(options ...Option) []string {
		all := readsOfARun(30).plans(newSettings(options))
		return texts(slices.DeleteFunc(all, func(p fault.Plan) bool { return len(p.Faults) < fewestInSwarm }))
	}
	hundred := swarm(WithSwarm(100), WithPairs(10))
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
	if diff := cmp.Diff(hundred, swarm(WithSwarm(100))); diff != "" {
		t.Errorf("without pairs, the same seed draws other plans:\n%s", diff)
	}
	if diff := cmp.Diff(hundred[:50], swarm(WithSwarm(50))); diff != "" {
		t.Errorf("a smaller swarm is not the beginning of a larger one:\n%s", diff)
	}
	if other := swarm(WithSwarm(100), WithSeed(7)); slices.ContainsFunc(other[:20], func(text string) bool { return slices.Contains(hundred[:20], text) }) {
		t.Error("another seed draws the same plans")
	}
	for _, text := range swarm(WithSwarm(100), WithoutFault(fault.RefuseRead, "a reason")) {
		if mustParse(t, text)[0].Has(fault.RefuseRead) {
			t.Errorf("%q has a fault that is left out", text)
		}
	}
	if few := readsOfARun(1).plans(newSettings([]Option{WithSwarm(10000), WithoutFault(fault.PanicAtRead, "a reason")})); len(few) > 10000 {
		t.Errorf("%d plans", len(few))
	}
}

// The shards of a swarm without end have different plans, and together those of the whole swarm.
func TestShardsOfSwarm(t *testing.T) {
	whole := newSwarm(3, readsOfARun(30).singles(), nil)
	want := texts(whole.draw(60))
	var got []string
	for i := range 3 {
		part := newSwarm(3, readsOfARun(30).singles(), nil)
		part.part = shard{index: i + 1, n: 3}
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
	s := newSwarm(1, readsOfARun(30).singles(), nil)
	b := &batch{plans: make([]fault.Plan, 2), order: []int{1, 0}, outcomes: make([]outcome, 2), progress: func(int, int, int) {}, more: func() []fault.Plan { return s.draw(3) }}
	var taken []int
	for range 7 {
		i, plan, ok := b.take()
		if !ok || (len(plan.Faults) >= fewestInSwarm) != (i >= 2) {
			t.Fatalf("plan %d is %q, %t", i, plan, ok)
		}
		taken = append(taken, i)
		if i != 5 { // one that was ended before it had an outcome
			b.finish(i, outcome{Plan: plan.String()})
		}
	}
	if diff := cmp.Diff([]int{1, 0, 2, 3, 4, 5, 6}, taken); diff != "" {
		t.Error(diff)
	}
	plans, outcomes := b.run(2)
	if len(plans) != 6 || len(outcomes) != 6 || plans[5].String() != outcomes[5].Plan {
		t.Errorf("run: %q", texts(plans))
	}
	b.stop = newStopper(time.Time{})
	b.stop.spend(budget{text: "1ns", time: 1})
	time.Sleep(time.Millisecond)
	if _, _, ok := b.take(); ok {
		t.Error("a plan was begun after the time of the budget")
	}
}

// What is asked for by the environment is a swarm without end, which needs a time.
func TestReadSwarm(t *testing.T) {
	minute := budget{text: "1m", time: time.Minute}
	for _, test := range []struct {
		text string
		b    budget
		ok   bool
	}{{"7", minute, true}, {"7", budget{}, false}, {"x", minute, false}} {
		t.Setenv(SwarmVariable, test.text)
		s := newSettings([]Option{WithSample(5), WithSwarm(9), WithSeed(3)})
		if err := s.readSwarm(test.b); (err == nil) != test.ok {
			t.Errorf("%q in %q: %v", test.text, test.b.text, err)
		}
		if test.ok && (s.seed != 7 || !s.only || !s.endless || s.sample != 0 || s.swarm != 0) {
			t.Errorf("%q: got %+v", test.text, s)
		}
	}
	t.Setenv(SwarmVariable, "")
	if err := newSettings([]Option{WithSwarm(-1)}).readSwarm(budget{}); err == nil {
		t.Error("a swarm has -1 plans")
	}
}
