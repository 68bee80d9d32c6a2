// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/journal"
)

func TestCausesOfATimer(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	changed := []Seen{{journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated", Times: 1}, "7"}}
	tests := []struct {
		name    string
		timer   func(*Timer)
		seen    []Seen
		written string
		want    []journal.CauseKind
	}{
		{"the first reconcile", func(*Timer) {}, nil, "", []journal.CauseKind{journal.CauseStart}},
		{"a change", func(*Timer) {}, changed, "6", []journal.CauseKind{journal.CauseOwnChange}},
		{"our own write", func(*Timer) {}, changed, "7", []journal.CauseKind{journal.CauseOwnWrite}},
		{"a requested time", func(t *Timer) { t.Set(now.Add(-time.Minute), time.Minute, false) }, nil, "", []journal.CauseKind{journal.CauseTimer}},
		{"a backoff", func(t *Timer) { t.Set(now.Add(-time.Minute), time.Second, true) }, nil, "", []journal.CauseKind{journal.CauseBackoff}},
		{"too early", func(t *Timer) { t.Set(now, time.Second, false) }, nil, "", []journal.CauseKind{journal.CauseUnknown}},
		{"nothing requested", func(t *Timer) { t.Set(now, 0, false) }, nil, "", []journal.CauseKind{journal.CauseUnknown}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var timer Timer
			test.timer(&timer)
			var got []journal.CauseKind
			for _, cause := range timer.Causes(test.seen, test.written, now) {
				got = append(got, cause.Kind)
			}
			same(t, "causes", test.want, got)
		})
	}
}

// Events and a requested time that come together are all causes, and a reconcile replaces the time.
func TestATimerBesideEvents(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var timer Timer
	timer.Set(now, time.Minute, true)
	timer.Set(now, time.Second, false)
	if timer.Due(now.Add(time.Second - 1)) {
		t.Error("it is due too early")
	}
	seen := []Seen{
		{journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated", Times: 2}, "7"},
		{journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated", Times: 1}, "8"},
	}
	var got []string
	for _, cause := range timer.Causes(seen, "", now.Add(time.Second)) {
		got = append(got, cause.String())
	}
	same(t, "causes", []string{"own change (updated) 3 times", "timer"}, got)
	timer.Set(now, 0, false)
	if timer.Due(now.Add(time.Hour)) {
		t.Error("it is due, though nothing was requested")
	}
}
