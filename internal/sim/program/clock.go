// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"sync"
	"time"
)

// A clock is the time that a run waits by: it goes slowly while the operator, or this process, is
// ready to run and other programs have the processors. On a busy machine an operator that has not
// come to its work yet would seem idle, and a restart that it has not noticed would seem harmless.
type clock struct {
	begun time.Time

	mu      sync.Mutex    // guards what follows
	looked  time.Time     // the last time
	starved time.Duration // of the operator, then
	lost    time.Duration // does not count
}

func newClock() *clock {
	now := time.Now()
	return &clock{begun: now, looked: now}
}

// now returns the time since the clock was made.
func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.begun) - c.lost
}

// time returns the time that the clock shows.
func (c *clock) time() time.Time { return c.begun.Add(c.now()) }

// look takes for how long the operator has been starved since it was started. It is called when
// period has passed since the last call: what is above it is how long this process was starved.
func (c *clock) look(starved, period time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	elapsed := now.Sub(c.looked)
	c.lose(elapsed, max(elapsed-period, starved-c.starved))
	c.looked, c.starved = now, starved
}

// lose takes that of elapsed some was lost. It never loses all, so that a wait ends also if the
// operator keeps a processor busy. The threads of an operator can lose more than has passed, and
// those that have ended do not count any more.
func (c *clock) lose(elapsed, lost time.Duration) {
	c.lost += min(max(lost, 0), elapsed*9/10)
}
