// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

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

// What is asked for by the environment is a swarm without end, which needs a time.
func TestReadSwarm(t *testing.T) {
	minute := explore.Budget{Time: time.Minute}
	for _, test := range []struct {
		text string
		b    explore.Budget
		ok   bool
	}{{"7", minute, true}, {"7", explore.Budget{}, false}, {"x", minute, false}} {
		t.Setenv(SwarmVariable, test.text)
		s := newSettings([]Option{WithSample(5), WithSwarm(9), WithSeed(3)})
		s.Budget = test.b
		if err := s.readSwarm(); (err == nil) != test.ok {
			t.Errorf("%q in %q: %v", test.text, test.b, err)
		}
		if test.ok && (s.Seed != 7 || !s.Only || !s.Endless || s.Sample != 0 || s.Swarm != 0) {
			t.Errorf("%q: got %+v", test.text, s)
		}
	}
	t.Setenv(SwarmVariable, "")
	if err := newSettings([]Option{WithSwarm(-1)}).readSwarm(); err == nil {
		t.Error("a swarm has -1 plans")
	}
}
