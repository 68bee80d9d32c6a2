// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// stopper ends an exploration early, so that what it has found is reported: before the time limit
// of the test, and when the user interrupts it. A nil one never does.
type stopper struct {
	limit time.Time // no plan is begun after it; zero: there is no limit
	kill  time.Time // no plan may take longer

	spent  time.Time // no plan is begun after it, as the budget is used up; zero: there is none
	budget string

	mu     sync.Mutex
	reason string // why it was stopped
}

// The time that is kept for the report, and for making plans smaller, of what a test may take.
const (
	marginPart = 10
	leastTime  = 2 * time.Second
	mostTime   = time.Minute
)

// newStopper returns the stopper of a test that has to end at a deadline. A zero deadline is none.
func newStopper(deadline time.Time) *stopper {
	if deadline.IsZero() {
		return &stopper{}
	}
	remaining := time.Until(deadline)
	margin := min(max(remaining/marginPart, leastTime), mostTime, remaining/2)
	return &stopper{limit: deadline.Add(-margin), kill: deadline.Add(-margin / 2)}
}

// spend begins to spend a budget, which counts from now.
func (s *stopper) spend(b budget) {
	if b.time > 0 {
		s.spent, s.budget = time.Now().Add(b.time), b.text
	}
}

// stopped returns why no more plans are to be begun; empty while they are.
func (s *stopper) stopped() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason == "" && !s.limit.IsZero() && !time.Now().Before(s.limit) {
		s.reason = report.TimeLimit
	}
	if s.reason == "" && !s.spent.IsZero() && !time.Now().Before(s.spent) {
		s.reason = report.Budget + s.budget
	}
	return s.reason
}

// patience returns how long a plan that begins now may take.
func (s *stopper) patience() time.Duration {
	if s == nil || s.kill.IsZero() {
		return planTime
	}
	return max(0, min(planTime, time.Until(s.kill)))
}

// onInterrupt stops the exploration at the first interrupt. The second one ends the process, as
// without it. The function that it returns ends this.
func (s *stopper) onInterrupt() (end func()) {
	interrupts, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(interrupts, os.Interrupt)
	go func() {
		defer signal.Stop(interrupts)
		select {
		case <-interrupts:
			s.mu.Lock()
			s.reason = report.Interrupted
			s.mu.Unlock()
		case <-done:
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}
