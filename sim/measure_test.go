// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sim

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/rings"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// measurePlans runs every nth plan of a workload in this process, as a worker does, and logs what
// they cost. The measure is the processor time of the process: unlike the time of the day, it does
// not depend on what else the machine does. Nothing is asserted, as machines differ.
func measurePlans(t *testing.T, workload *Workload, nth, times int) {
	t.Helper()
	crds, err := readCRDs(workload)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range crds {
		for _, v := range definition.Spec.Versions {
			describe(v.Schema.OpenAPIV3Schema)
		}
	}
	ref, first, err := findReference(t, workload, crds, newSettings(nil))
	if err != nil {
		t.Fatal(err)
	}
	if ref == nil {
		t.Fatal(first.violations, first.trace)
	}
	all := ref.plans(newSettings(nil))
	var plans []fault.Plan
	for i := 0; i < len(all); i += nth {
		plans = append(plans, all[i])
	}
	collectLess()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started, cpu := time.Now(), processorTime(t)
	for range times {
		for _, plan := range plans {
			if _, err := runPlan(t, workload, crds, plan, ref, oracleSet{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	passed, cpu, n := time.Since(started), processorTime(t)-cpu, times*len(plans)
	runtime.ReadMemStats(&after)
	perPlan := cpu / time.Duration(n)
	t.Logf("%d runs of %d plans of %d, %s of processor time each, %.0f a second and core; %s each by the clock, %d kB allocated, %d collections",
		n, len(plans), len(all), perPlan.Round(time.Microsecond), float64(time.Second)/float64(perPlan), (passed / time.Duration(n)).Round(time.Microsecond),
		(after.TotalAlloc-before.TotalAlloc)/uint64(n)/1024, after.NumGC-before.NumGC)
}

// processorTime returns how long the process has used processors so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A plan must not depend on the plans that the same process has run before, although servers share
// definitions, namespaces, discovery documents and the results of pure functions.
func TestPlansDoNotDependOnEarlierPlans(t *testing.T) {
	rings.Test(t, "simulates for a while")
	for name, test := range map[string]struct {
		workload *Workload
		nth      int
	}{
		"small":  {keeperWorkload(), 40},
		"played": {fleetWorkload(t), 200},
	} {
		t.Run(name, func(t *testing.T) { testRepeatedPlans(t, test.workload, test.nth) })
	}
}

// testRepeatedPlans runs every nth plan of a workload twice in one process, with other plans between.
func testRepeatedPlans(t *testing.T, workload *Workload, nth int) {
	t.Helper()
	crds, err := readCRDs(workload)
	if err != nil {
		t.Fatal(err)
	}
	ref, _, err := findReference(t, workload, crds, newSettings(nil))
	if err != nil {
		t.Fatal(err)
	}
	plans := ref.plans(newSettings(nil))
	traces := map[int]string{}
	for range 2 {
		for i := 0; i < len(plans); i += nth {
			result, err := runPlan(t, workload, crds, plans[i], ref, oracleSet{})
			if err != nil {
				t.Fatal(err)
			}
			if text := result.trace.String(); traces[i] == "" {
				traces[i] = text
			} else if traces[i] != text {
				t.Errorf("%s: the second run has another trace:\n%s\nthe first one:\n%s", plans[i], text, traces[i])
			}
		}
	}
}
