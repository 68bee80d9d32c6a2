// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]Budget{
		"": {}, "full": {}, "smoke": {name: "smoke", places: 1}, "quick": {name: "quick", places: 4}, "90s": {name: "90s", Time: 90 * time.Second},
	} {
		if got, err := ParseBudget(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"tiny", "-3m", "0s", "10"} {
		if _, err := ParseBudget(text); err == nil || !strings.Contains(err.Error(), "full, quick, smoke, or a time such as 90s") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// A named budget has each kind of fault, at places all over the run, and what it leaves out is
// counted.
func TestBudgetHasEachKind(t *testing.T) {
	plans := mustParse(t, "seed 1", "crash before write 1", "crash before write 2", "crash before write 3", "refuse write 1: 409", "refuse write 1: 500",
		"crash before write 1; crash before write 2", "crash before write 1; crash before write 3")
	for name, want := range map[string][]int{"smoke": {0, 1, 4, 5, 6}, "quick": {0, 1, 2, 3, 4, 5, 6, 7}, "full": {0, 1, 2, 3, 4, 5, 6, 7}, "1m": {0, 1, 2, 3, 4, 5, 6, 7}} {
		b, err := ParseBudget(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.of(plans, nil)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
	got := notRun(plans, func(i int) bool { return i < 2 || i == 4 || i == 5 || i == 6 })
	want := []report.NotRun{{Kind: "crash before write N", Plans: 2, Total: 3}, {Kind: "pairs", Plans: 1, Total: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// No plan is begun after the time of a budget, unless the test ends before it.
func TestBudgetOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStopper(time.Now().Add(time.Hour))
		s.Spend(Budget{name: "10m", Time: 10 * time.Minute}, time.Now())
		time.Sleep(10*time.Minute - time.Nanosecond)
		if got := s.Stopped(); got != "" {
			t.Errorf("stopped too early: %s", got)
		}
		time.Sleep(time.Nanosecond)
		if got := s.Stopped(); got != report.Budget+"10m" {
			t.Errorf("got %q", got)
		}
		if got, _ := deadline(s); time.Until(got) != 49*time.Minute+30*time.Second {
			t.Errorf("a plan that has begun may take %s", time.Until(got))
		}
		s = NewStopper(time.Now().Add(time.Minute))
		s.Spend(Budget{name: "10m", Time: 10 * time.Minute}, time.Now())
		time.Sleep(time.Minute)
		if got := s.Stopped(); got != report.TimeLimit {
			t.Errorf("got %q", got)
		}
	})
}

// A plan that takes long is not begun shortly before the end, but a short budget has plans.
func TestABudgetIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Stopper{}
		s.Takes(time.Second)
		if _, ok := s.Left(); ok || s.Stopped() != "" {
			t.Error("without a budget there is an end")
		}
		s.Spend(Budget{Time: time.Minute}, time.Now())
		s.Takes(12 * time.Second)
		time.Sleep(47 * time.Second)
		if reason := s.Stopped(); reason != "" {
			t.Errorf("stopped early: %s", reason)
		}
		time.Sleep(time.Second)
		if s.Stopped() == "" {
			t.Error("a plan of 12 seconds may begin when 12 seconds are left")
		}
		s = &Stopper{}
		s.Spend(Budget{Time: 20 * time.Second}, time.Now())
		s.Takes(time.Minute)
		if left, _ := s.Left(); left != 15*time.Second {
			t.Errorf("%s are left of 20 s, want 15", left)
		}
	})
}
