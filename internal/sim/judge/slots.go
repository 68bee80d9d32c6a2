// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import "time"

// slots are when the operator creates an object, or deletes it, again and again by the clock, such
// as the Job of a schedule: a run that takes longer has more of them.
type slots struct {
	last  time.Time
	least time.Duration // between two of them; zero as long as there was one
	late  int           // of those after the end of the run without faults, as far from the one before as there
}

// noteSlot notes that the operator has created or deleted an object.
func noteSlot(l *ledger, what string, c *change) {
	s := l.slots[what]
	if s == nil {
		s = &slots{}
		l.slots[what] = s
	}
	defer func() { s.last = time.Now() }()
	if s.last.IsZero() {
		return
	}
	since := time.Since(s.last)
	if s.least == 0 || since < s.least {
		s.least = since
	}
	if l.reference == nil || len(l.reference.times) == 0 || !l.isPeriodic(workOf(c)) {
		return
	}
	end, usual := l.reference.times[len(l.reference.times)-1], l.reference.slots[what]
	if usual != nil && usual.least >= l.pace.Clock && since >= usual.least*9/10 && time.Since(l.began) > end {
		s.late++
	}
}

// lateSlots returns how many slots an operator has had because the run took longer.
func lateSlots(l *ledger, what string) int {
	if s := l.slots[what]; s != nil {
		return s.late
	}
	return 0
}
