// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// telling returns the places of plans in the order in which they are begun: those first of which
// much can be learned when there is little time. Plans without faults come first, then one of each
// kind of fault, or of transition, after the other, at places all over the run, and pairs last.
func telling(plans []fault.Plan) []int {
	var none, pairs []int
	var kinds []string
	singles := map[string][]int{}
	single := func(kind string, i int) {
		if len(singles[kind]) == 0 {
			kinds = append(kinds, kind)
		}
		singles[kind] = append(singles[kind], i)
	}
	for i, p := range plans {
		switch n := len(p.Faults); {
		case p.Transition != "" && n == 0:
			single(kindOfChange(p), i)
		case n == 0:
			none = append(none, i)
		case n == 1:
			single(p.Faults[0].Kind.String()+p.Faults[0].How, i)
		default:
			pairs = append(pairs, i)
		}
	}
	order := none
	for _, kind := range kinds {
		singles[kind] = spread(singles[kind])
	}
	for round := 0; len(order)+len(pairs) < len(plans); round++ {
		for _, kind := range kinds {
			if list := singles[kind]; round < len(list) {
				order = append(order, list[round])
			}
		}
	}
	return append(order, pairs...)
}

// kindOfChange returns in which way a transition changes a property, by its name.
func kindOfChange(p fault.Plan) string {
	_, kind, _ := strings.Cut(p.Transition, ": ")
	kind, _, _ = strings.Cut(kind, ",")
	return kind
}

// spread orders a list so that each beginning of it has elements from all over it: the first, the
// middle one, those at the quarters, and so on.
func spread(list []int) []int {
	width := bits.Len(uint(max(0, len(list)-1)))
	out := make([]int, 0, len(list))
	for n := range 1 << width {
		if i := int(bits.Reverse64(uint64(n)) >> (64 - width)); i < len(list) {
			out = append(out, list[i])
		}
	}
	return out
}

// A shard is a part of the plans: the index-th of n, from 1. The zero value is all of them.
type shard struct{ index, n int }

// parseShard reads "2/4".
func parseShard(text string) (shard, error) {
	if text == "" {
		return shard{}, nil
	}
	a, b, _ := strings.Cut(text, "/")
	index, err := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil || index < 1 || index > n {
		return shard{}, fmt.Errorf("shard %q: want one like 2/4, the second of four", text)
	}
	return shard{index, n}, nil
}

func (s shard) String() string { return fmt.Sprintf("%d/%d", s.index, s.n) }

// whole reports whether the shard is all plans.
func (s shard) whole() bool { return s.n <= 1 }

// first reports whether the shard is the first one, or all plans.
func (s shard) first() bool { return s.index <= 1 }

// of returns which of the plans belong to the shard, in order. Every shard gets plans of all kinds.
func (s shard) of(plans []fault.Plan) []int {
	var list []int
	for place, i := range telling(plans) {
		if s.whole() || place%s.n == s.index-1 {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list
}

// sample returns which n of the plans belong to a sample, in order.
func sample(plans []fault.Plan, n int) []int {
	order := telling(plans)
	firstPair := slices.IndexFunc(order, func(i int) bool { return len(plans[i].Faults) > 1 })
	if firstPair < 0 {
		firstPair = len(order)
	}
	pairs := min(n/5, len(order)-firstPair)
	list := slices.Concat(order[:min(n-pairs, firstPair)], order[firstPair:firstPair+pairs])
	slices.Sort(list)
	return list
}
