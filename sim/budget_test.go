// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]budget{
		"": {}, "full": {}, "smoke": {text: "smoke", places: 1}, "quick": {text: "quick", places: 4}, "90s": {text: "90s", time: 90 * time.Second},
	} {
		if got, err := parseBudget(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"tiny", "-3m", "0s", "10"} {
		if _, err := parseBudget(text); err == nil || !strings.Contains(err.Error(), "full, quick, smoke, or a time such as 90s") {
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
		b, err := parseBudget(name)
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
		s := newStopper(time.Now().Add(time.Hour))
		s.spend(budget{text: "10m", time: 10 * time.Minute})
		time.Sleep(10*time.Minute - time.Nanosecond)
		if got := s.stopped(); got != "" {
			t.Errorf("stopped too early: %s", got)
		}
		time.Sleep(time.Nanosecond)
		if got := s.stopped(); got != report.Budget+"10m" {
			t.Errorf("got %q", got)
		}
		if got := s.patience(); got != planTime {
			t.Errorf("a plan that has begun may take %s", got)
		}
		s = newStopper(time.Now().Add(time.Minute))
		s.spend(budget{text: "10m", time: 10 * time.Minute})
		time.Sleep(time.Minute)
		if got := s.stopped(); got != report.TimeLimit {
			t.Errorf("got %q", got)
		}
	})
}

// A budget reaches the exploration, says what was not run, and does not fail the test.
func TestBudgetIsExplored(t *testing.T) {
	rings.Test(t, "simulates for a while")
	r := Explore(t, copyWorkload(), WithBudget("smoke"))
	if r == nil {
		return // this is a worker
	}
	plans := r.simulation.Plans
	if len(r.Plans) == 0 || plans.Run >= plans.Total || len(plans.NotRun) == 0 {
		t.Errorf("%d plans were run: %+v", len(r.Plans), plans)
	}
	left := 0
	for _, n := range plans.NotRun {
		left += n.Plans
	}
	if left != plans.Total-plans.Run {
		t.Errorf("%d plans are said to be left out of %d, of which %d were run", left, plans.Total, plans.Run)
	}
	if text := r.simulation.Summary(); !strings.Contains(text, "budget smoke: ") || !strings.Contains(text, "not run: ") {
		t.Errorf("the summary is %s", text)
	}
}
