// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What waits for its time is done then, at the latest after the longest wait, and at once, one after
// the other, when everything is idle. What waits for idleness comes after that.
func TestLater(t *testing.T) {
	for name, test := range map[string]struct {
		passes time.Duration
		due    []string
		idle   [][]string
	}{
		"nothing has passed": {0, nil, [][]string{{"second"}, {"minute"}, {"hour"}, {"one", "two"}}},
		"a second":           {time.Second, []string{"second"}, [][]string{{"minute"}, {"hour"}, {"one", "two"}}},
		"the longest wait":   {2 * time.Minute, []string{"second", "minute", "hour"}, [][]string{{"one", "two"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var did []string
				note := func(text string) func() { return func() { did = append(did, text) } }
				l := &later{clock: newClock(), most: 2 * time.Minute}
				l.WhenIdle(note("one"))
				l.After(time.Hour, note("hour"))
				l.After(time.Minute, note("minute"))
				l.After(time.Second, note("second"))
				l.WhenIdle(note("two"))
				time.Sleep(test.passes)
				if got := l.due(); got != (test.due != nil) {
					t.Errorf("something was due: %t", got)
				}
				if diff := cmp.Diff(test.due, did); diff != "" {
					t.Errorf("due: %s", diff)
				}
				var idle [][]string
				for did = nil; l.idle(); did = nil {
					idle = append(idle, did)
				}
				if diff := cmp.Diff(test.idle, idle); diff != "" {
					t.Errorf("while idle: %s", diff)
				}
			})
		})
	}
}
