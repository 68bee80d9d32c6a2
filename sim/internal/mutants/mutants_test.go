// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

var (
	pairs       = flag.Int("pairs", 10, "run so many `pairs` of faults against each right twin")
	repetitions = flag.Int("repetitions", 2, "run the plan that shows a mutant so many `times`")
	part        = flag.String("part", "1/1", "run only the `i/n`-th part of the mutants, and of the twins")
	drawn       = flag.String("drawn", "", "run the mutant of this `bug` as users run an operator, for a picture of its report")
)

// sampled are the twins that make test runs, each with a sample of the plans.
var sampled = []string{"external", "sets"}

// The right twins survive everything.
func TestNoTwinRaisesAnAlarm(t *testing.T) {
	rings.Test(t, "simulates")
	list := Twins()
	for i, twin := range list {
		if !inPart(t, i, len(list)) {
			continue
		}
		w := twin.Workload()
		t.Run(w.Name, func(t *testing.T) {
			if !slices.Contains(sampled, w.Name) {
				rings.Explore(t, "takes minutes for all twins")
			}
			sim.Run(t, w, sim.WithPairs(*pairs), sim.WithSample(16), sim.WithStaleLists())
		})
	}
}

// inPart reports whether the i-th of n is in the part that is run.
func inPart(t *testing.T, i, n int) bool {
	t.Helper()
	var number, parts int
	if _, err := fmt.Sscanf(*part, "%d/%d", &number, &parts); err != nil || number < 1 || number > parts || parts > n {
		t.Fatalf("-part: want one such as 2/4 of %d, not %q", n, *part)
	}
	return i%parts == number-1
}

// late are mutants that are found after many plans, or by plans that take long.
var late = []Bug{blindStatusOverwrite, counterInMessage, observedFromMemory, wipesAnnotations}

// Every mutant is caught without pairs, by an oracle that is meant for it, and its plan shows it
// each time.
func TestEveryMutantIsCaught(t *testing.T) {
	rings.Test(t, "simulates")
	oracles := map[oracle.Name]bool{}
	seen := map[Bug]bool{}
	list := All()
	for i, m := range list {
		if seen[m.Bug] {
			t.Errorf("mutant %s is there twice", m.Bug)
		}
		seen[m.Bug] = true
		left := oracles[m.CaughtBy[0]] || slices.Contains(late, m.Bug) // make test runs one for each oracle
		oracles[m.CaughtBy[0]] = oracles[m.CaughtBy[0]] || !left
		if !inPart(t, i, len(list)) {
			continue
		}
		t.Run(string(m.Bug), func(t *testing.T) {
			if left {
				rings.Explore(t, "takes minutes for all mutants")
			}
			report := sim.Explore(t, m.Workload(m.Bug), sim.WithStopOn(m.CaughtBy...), sim.WithStaleLists())
			if report == nil {
				return // this is a worker
			}
			i := slices.IndexFunc(report.Findings, func(f sim.Finding) bool { return slices.Contains(m.CaughtBy, f.Violation.Oracle) })
			if i < 0 {
				for _, f := range report.Findings {
					t.Logf("found: %s with %s", f.Violation, f.Plan)
				}
				t.Fatalf("%s: none of the %d plans violates one of %v", m.Class, len(report.Plans), m.CaughtBy)
			}
			f := report.Findings[i]
			t.Logf("%s: %s, with %s (%d of %d plans)", m.Class, f.Violation.Oracle, f.Plan, f.Plans, len(report.Plans))
			for _, violations := range report.Repeat(t, f.Plan, *repetitions) {
				if !slices.ContainsFunc(violations, func(v oracle.Violation) bool { return v.Oracle == f.Violation.Oracle }) {
					t.Errorf("plan %q shows %s one time and not another", f.Plan, f.Violation.Oracle)
				}
			}
		})
	}
	if len(seen) < 60 {
		t.Errorf("%d mutants", len(seen))
	}
}

// The report of a mutant that is run as users run an operator is in the documentation: make
// pictures takes the picture.
func TestDrawn(t *testing.T) {
	if *drawn == "" {
		t.Skip("-drawn names no mutant")
	}
	list := All()
	i := slices.IndexFunc(list, func(m Mutant) bool { return string(m.Bug) == *drawn })
	if i < 0 {
		t.Fatalf("-drawn: no mutant is called %q", *drawn)
	}
	sim.Run(t, list[i].Workload(list[i].Bug), sim.WithStopOn(list[i].CaughtBy...), sim.WithoutFault(fault.Withhold, "its picture is wider than a page"))
}
