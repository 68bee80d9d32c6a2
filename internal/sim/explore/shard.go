// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// A Shard is a part of the plans: the index-th of n, from 1. The zero value is all of them.
type Shard struct{ index, n int }

// ParseShard reads "2/4".
func ParseShard(text string) (Shard, error) {
	if text == "" {
		return Shard{}, nil
	}
	a, b, _ := strings.Cut(text, "/")
	index, err := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil || index < 1 || index > n {
		return Shard{}, fmt.Errorf("shard %q: want one like 2/4, the second of four", text)
	}
	return Shard{index, n}, nil
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.index, s.n) }

// Whole reports whether the shard is all plans.
func (s Shard) Whole() bool { return s.n <= 1 }

// First reports whether the shard is the first one, or all plans.
func (s Shard) First() bool { return s.index <= 1 }

// of returns which of the plans belong to the shard, in order. Every shard gets plans of all kinds.
func (s Shard) of(plans []fault.Plan, at sites) []int {
	var list []int
	for place, i := range telling(plans, at) {
		if s.Whole() || place%s.n == s.index-1 {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list
}
