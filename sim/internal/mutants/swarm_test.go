// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"flag"
	"slices"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

var (
	swarm     = flag.Int("swarm", 600, "draw so many `plans` against the mutants that only a swarm finds")
	swarmSeed = flag.Uint64("swarm-seed", 1, "draw them from this `number`")
)

// What needs three faults or more is found by a swarm, and by nothing else: all plans with one fault
// and some pairs come first, and show nothing. The finding has no more faults than are needed.
func TestSwarmFindsWhatPairsDoNot(t *testing.T) {
	rings.Test(t, "simulates")
	for _, m := range swarmMutants() {
		t.Run(string(m.Bug), func(t *testing.T) {
			if m.Bug != trustsTheDead {
				rings.Explore(t, "takes a minute")
			}
			report := sim.Explore(t, m.Workload(m.Bug), sim.WithPairs(*pairs), sim.WithSwarm(*swarm), sim.WithSeed(*swarmSeed), sim.WithStopOn(m.CaughtBy...))
			if report == nil {
				return // this is a worker
			}
			i := slices.IndexFunc(report.Findings, func(f sim.Finding) bool {
				return f.CoveredBy == "" && slices.Contains(m.CaughtBy, f.Violation.Oracle)
			})
			if i < 0 {
				t.Fatalf("%s: none of the %d plans violates one of %v", m.Class, len(report.Plans), m.CaughtBy)
			}
			f := report.Findings[i]
			t.Logf("%s: %s, with %s, after %d plans", m.Class, f.Violation.Oracle, f.Plan, len(report.Plans))
			if len(f.Plan.Faults) < 3 || len(f.Plan.Faults) > 4 {
				t.Errorf("%q has %d faults, want 3 or 4", f.Plan, len(f.Plan.Faults))
			}
		})
	}
}

// The right twin survives swarms.
func TestSwarmLeavesTheTwinAlone(t *testing.T) {
	rings.Explore(t, "takes minutes")
	sim.Run(t, stubbornWorkload(Right), sim.WithPairs(*pairs), sim.WithSwarm(*swarm), sim.WithSeed(*swarmSeed))
}
