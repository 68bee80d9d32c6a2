// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"time"
)

// timers are what the simulation itself does later. Nothing is idle before they were done.
type timers struct{ list []timer }

type timer struct {
	at time.Time
	do func()
}

// After does something later, in the driver.
func (t *timers) After(d time.Duration, do func()) {
	t.list = append(t.list, timer{at: time.Now().Add(d), do: do})
}

// CancelTimers forgets what would be done later.
func (t *timers) CancelTimers() { t.list = nil }

func (t *timers) any() bool { return len(t.list) > 0 }

// run does what is due, calls done after each, and reports whether there was anything.
func (t *timers) run(now time.Time, done func()) bool {
	ran := false
	for i := 0; i < len(t.list); i++ {
		if due := t.list[i]; !due.at.After(now) {
			t.list = slices.Delete(t.list, i, i+1)
			i--
			due.do()
			done()
			ran = true
		}
	}
	return ran
}

func (t *timers) due() time.Time {
	var next time.Time
	for _, timer := range t.list {
		next = earlier(next, timer.at)
	}
	return next
}
