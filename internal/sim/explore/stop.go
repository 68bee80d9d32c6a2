// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A Stopper ends an exploration early, so that what it has found is reported: before the time limit
// of the test, and when the user interrupts it. A nil one never does.
type Stopper struct {
	limit time.Time // no plan is begun after it; zero: there is no limit
	Kill  time.Time // no plan may take longer; zero: there is no limit

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

// NewStopper returns the stopper of a test that has to end at a deadline. A zero deadline is none.
func NewStopper(deadline time.Time) *Stopper {
	if deadline.IsZero() {
		return &Stopper{}
	}
	remaining := time.Until(deadline)
	margin := Margin(remaining)
	return &Stopper{limit: deadline.Add(-margin), Kill: deadline.Add(-margin / 2)}
}

// Margin returns how much of a time is kept for the report, and for making plans smaller.
func Margin(d time.Duration) time.Duration {
	return min(max(d/marginPart, leastTime), mostTime, d/2)
}

// Spend spends a budget, which counts from a moment on.
func (s *Stopper) Spend(b Budget, from time.Time) {
	if b.Time > 0 {
		s.spent, s.budget = from.Add(b.Time), b.String()
	}
}

// Takes has no plan begin that would not end within the budget, because plans take so long. Three
// quarters of what is left are for plans at least.
func (s *Stopper) Takes(each time.Duration) {
	if left, ok := s.Left(); ok {
		s.spent = s.spent.Add(-min(each, left/4))
	}
}

// Left returns how much of the budget is left; ok is false if there is none.
func (s *Stopper) Left() (left time.Duration, ok bool) {
	if s == nil || s.spent.IsZero() {
		return 0, false
	}
	return max(0, time.Until(s.spent)), true
}

// Stopped returns why no more plans are to be begun; empty while they are.
func (s *Stopper) Stopped() string {
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

// End ends the exploration, for a reason.
func (s *Stopper) End(reason string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = reason
}

// Within returns a context that ends when no plan may take longer.
func (s *Stopper) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if s == nil || s.Kill.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, s.Kill)
}
