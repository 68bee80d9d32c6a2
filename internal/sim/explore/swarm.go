// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// The number of faults in a plan of a swarm, and where they strike.
const (
	fewestInSwarm = 3
	mostInSwarm   = 8

	placesOfDensest = 4 // so many writes have all faults of the densest plans
)

// A swarm draws plans of several faults. The n-th plan depends on the seed, on n, and on what can
// strike. Each plan has weights of its own, because plans that have a little of everything are all
// alike: most find nothing but what one of the frequent faults shows.
type swarm struct {
	choice *Choice
	faults []candidate       // all that can strike, in the order in which a plan lists them
	kinds  []fault.Kind      // of the faults, each once
	widths int               // how many times a part of the run can be halved that has some writes
	seen   map[string]uint64 // the plans that it does not draw again, with the numbers of its own
	next   uint64            // the number of the next plan
	part   Shard             // plans of other shards are drawn and left out
}

// A candidate is a fault that a swarm may draw.
type candidate struct {
	fault.Fault
	at float64 // where in the run it strikes, from 0 to 1
}

// weights say what the plans of a swarm are made of. They are drawn before the faults of a plan.
type weights struct {
	faults     int                 // how many
	kinds      map[fault.Kind]bool // that take part
	begin, end float64             // the part of the run in which they strike: a short one is dense
	clients    int                 // the weight of what other clients do
	watches    int                 // the weight of watches that are slow, or lose something
	order      uint64              // of what can happen in any order
}

// newSwarm returns the swarm of a run. It draws none of the plans that are run anyway.
func newSwarm(choice *Choice, faults []fault.Fault, anyway []fault.Plan) *swarm {
	s := &swarm{choice: choice, seen: map[string]uint64{}}
	last := map[placeKey]int{}
	for _, f := range faults {
		of := placeOf(f.Kind.Point(), 0, f.Of)
		last[of] = max(last[of], f.At)
	}
	for _, f := range faults {
		n := last[placeOf(f.Kind.Point(), 0, f.Of)]
		s.faults = append(s.faults, candidate{f, float64(f.At) / float64(max(1, n))})
		if !slices.Contains(s.kinds, f.Kind) {
			s.kinds = append(s.kinds, f.Kind)
		}
	}
	s.widths = bits.Len(uint(last[placeKey{point: fault.AtWrite}] / placesOfDensest))
	for _, p := range anyway {
		s.seen[p.String()] = 0
	}
	return s
}

// draw returns n plans that were not drawn before, or fewer if it finds no more.
func (s *swarm) draw(n int) []fault.Plan {
	var list []fault.Plan
	for tries := 0; len(list) < n && tries < 20*n*max(1, s.part.n); tries++ {
		number := s.next
		s.next++
		plan := s.plan(rand.New(rand.NewPCG(s.choice.Seed, number)))
		text := plan.String()
		if _, seen := s.seen[text]; seen || len(plan.Faults) < fewestInSwarm {
			continue
		}
		s.seen[text] = number
		if s.part.Whole() || number%uint64(s.part.n) == uint64(s.part.index-1) {
			list = append(list, plan)
		}
	}
	return list
}

// plan draws the weights of a plan, and then its faults.
func (s *swarm) plan(random *rand.Rand) fault.Plan {
	w := s.weights(random)
	possible, total := map[fault.Kind][]int{}, 0
	for i, c := range s.faults {
		if w.kinds[c.Kind] && c.at >= w.begin && c.at <= w.end && w.of(c.Kind) > 0 {
			if possible[c.Kind] == nil {
				total += w.of(c.Kind)
			}
			possible[c.Kind] = append(possible[c.Kind], i)
		}
	}
	var chosen []int
	for tries := 0; total > 0 && len(chosen) < w.faults && tries < 4*w.faults; tries++ {
		i := s.pick(random, w, possible, total)
		if !slices.ContainsFunc(chosen, func(other int) bool { return !fault.Compatible(s.faults[i].Fault, s.faults[other].Fault) }) {
			chosen = append(chosen, i)
		}
	}
	slices.Sort(chosen)
	plan := fault.Plan{Seed: w.order}
	for _, i := range chosen {
		plan.Faults = append(plan.Faults, s.faults[i].Fault)
	}
	return plan
}

// weights draws the weights of a plan.
func (s *swarm) weights(random *rand.Rand) weights {
	w := weights{
		faults: fewestInSwarm + random.IntN(mostInSwarm-fewestInSwarm+1),
		kinds:  map[fault.Kind]bool{},
		// Without them half of the time: they hide what happens without them.
		clients: max(0, random.IntN(6)-2),
		watches: max(0, random.IntN(6)-2),
		order:   uint64(random.IntN(max(1, s.choice.Orders))),
	}
	width := 1 / float64(int(1)<<random.IntN(s.widths+1))
	w.begin = random.Float64() * (1 - width)
	w.end = w.begin + width
	share := 1 / float64(int(1)<<random.IntN(4))
	for _, kind := range s.kinds {
		if random.Float64() < share {
			w.kinds[kind] = true
		}
	}
	return w
}

// of returns the weight of a kind of faults.
func (w weights) of(k fault.Kind) int {
	switch {
	case k.Point() == fault.AtEvent:
		return w.watches
	case k.AddsWork():
		return w.clients
	}
	return usual
}

// pick draws a kind of faults by its weight, and then one of them.
func (s *swarm) pick(random *rand.Rand, w weights, possible map[fault.Kind][]int, total int) int {
	left := random.IntN(total)
	for _, kind := range s.kinds {
		list := possible[kind]
		if len(list) == 0 {
			continue
		}
		if left -= w.of(kind); left < 0 {
			return list[random.IntN(len(list))]
		}
	}
	return 0 // not reached: total is the sum of the weights
}
