// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"
	"testing/synctest"
	"time"
)

// A clock goes as time does beside an operator that waits for nothing, and slowly beside one that
// waits for a processor. It never stands still.
func TestClock(t *testing.T) {
	for name, test := range map[string]struct {
		passes, starved time.Duration
		want            time.Duration
	}{
		"idle":                   {100 * time.Millisecond, 0, 100 * time.Millisecond},
		"starved":                {100 * time.Millisecond, 60 * time.Millisecond, 40 * time.Millisecond},
		"many threads":           {100 * time.Millisecond, time.Second, 10 * time.Millisecond},
		"ended threads":          {100 * time.Millisecond, -time.Second, 100 * time.Millisecond},
		"this process was, too":  {400 * time.Millisecond, 0, 100 * time.Millisecond},
		"of both the longer one": {400 * time.Millisecond, 350 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClock()
				time.Sleep(test.passes)
				c.look(test.starved, 100*time.Millisecond)
				if got := c.now(); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
}
