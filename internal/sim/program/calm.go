// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"sync"
	"time"
)

// A calm measures for how long an operator has done nothing: it has no request under way, was shown
// nothing, and its threads have neither used a processor nor waited for one. That holds in any language.
// An operator that waits for a timer is calm, too, so a calm also remembers the longest pause after
// which the operator has asked for something again by itself: since the last request or event, also if
// it has used a processor before. Its methods may be called concurrently.
type calm struct {
	clock *clock
	quiet time.Duration // a longer pause is not remembered: what comes after it is not waited for

	mu     sync.Mutex    // guards what follows
	since  time.Duration // by clock
	dealt  time.Duration // by clock, the last time that it had to do with the cluster
	starts bool          // it has asked for nothing yet
	under  int           // requests that are under way
	used   time.Duration // of the processors, and waited for them, when it was looked at last
	pause  time.Duration // the longest one
}

// busyShare is which part of a processor an operator uses at least that has work to do.
const busyShare = 0.1

func newCalm(c *clock, quiet time.Duration) *calm {
	return &calm{clock: c, quiet: quiet, since: c.now(), dealt: c.now(), starts: true}
}

// begin notes that the operator asks for something, until end is called.
func (c *calm) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pause := c.clock.now() - c.dealt; c.under == 0 && !c.starts && pause < c.quiet {
		c.pause = max(c.pause, pause)
	}
	c.under++
	c.starts = false
	c.deal()
}

// end notes that a request was answered.
func (c *calm) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under--
	c.deal()
}

// show notes that the operator is shown something.
func (c *calm) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deal()
}

// start notes that a process is started: the time until it asks for something is no pause.
func (c *calm) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts = true
	c.deal()
}

// deal is called with mu held.
func (c *calm) deal() {
	c.dealt = c.clock.now()
	c.since = c.dealt
}

// look takes for how long the operator has used the processors and waited for them since it was
// started. It is called when period has passed since the last call. An operator of which that is not known
// is never calm.
func (c *calm) look(used, period time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if used == 0 || used < c.used || used-c.used > time.Duration(busyShare*float64(period)) {
		c.since = c.clock.now()
	}
	c.used = used
}

// lasts returns for how long the operator has been calm.
func (c *calm) lasts() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.under > 0 {
		return 0
	}
	return c.clock.now() - c.since
}

// longest returns the longest pause.
func (c *calm) longest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pause
}

// calmPart is which part of Options.Quiet an operator is calm at least before it is taken for idle.
const calmPart = 4

// waits returns for how long a calm operator is waited for that has come back by itself after such a
// pause: twice as long, because the next pause of one that backs off is twice the last one.
func waits(quiet, pause time.Duration) time.Duration { return min(max(quiet/calmPart, 2*pause), quiet) }
