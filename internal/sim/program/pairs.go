// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import "github.com/ctrlkit/ctrlkit/internal/sim/fault"

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
