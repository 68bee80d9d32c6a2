// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// deadline returns when a plan has to end.
func deadline(s *Stopper) (time.Time, bool) {
	ctx, cancel := s.Within(context.Background())
	defer cancel()
	return ctx.Deadline()
}

// Plans are begun until there is only the time left that the report needs, and none may take longer
// than half of that.
func TestTimeLimit(t *testing.T) {
	for limit, margin := range map[time.Duration]time.Duration{
		10 * time.Minute: time.Minute, time.Hour: time.Minute, time.Minute: 6 * time.Second, 10 * time.Second: 2 * time.Second, 2 * time.Second: time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := NewStopper(time.Now().Add(limit))
			if got, _ := deadline(s); time.Until(got) != limit-margin/2 {
				t.Errorf("%s: a plan may take %s, want %s", limit, time.Until(got), limit-margin/2)
			}
			time.Sleep(limit - margin - time.Nanosecond)
			if got := s.Stopped(); got != "" {
				t.Errorf("%s: stopped too early: %s", limit, got)
			}
			time.Sleep(time.Nanosecond)
			if got := s.Stopped(); got != report.TimeLimit {
				t.Errorf("%s: got %q", limit, got)
			}
			if got, _ := deadline(s); time.Until(got) != margin/2 {
				t.Errorf("%s: a plan that runs may take %s", limit, got)
			}
		})
	}
	for _, s := range []*Stopper{nil, NewStopper(time.Time{})} {
		if _, limited := deadline(s); s.Stopped() != "" || limited {
			t.Error("a test without a time limit has one")
		}
	}
}

// When the time is over, findings keep the plans that they have.
func TestNothingIsMadeSmallerAfterTheTimeLimit(t *testing.T) {
	e := &Explorer{Rest: &Stopper{reason: report.TimeLimit}, Allowed: all, Parallel: one}
	plan := mustParse(t, "seed 1; occupy the name before write 1; crash after write 2")[0]
	if _, _, simpler := e.Shrink(t.Context(), plan, report.Finding{Oracle: oracle.SameEnd}); simpler {
		t.Error("a plan was run")
	}
}
