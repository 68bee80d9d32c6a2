// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cronjob_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

var allPlans = flag.Bool("all-plans", false, "do not stop a simulation at its first finding, and print how many plans have which")

// What stays after a fault, in the two stages that have the old body: a condition that no reconcile
// takes back.
func TestSimulationOfBefore(t *testing.T) {
	explore(t, "before", sim.OracleSameEnd, sim.OracleNoNoopWrites)
}

func TestSimulationOfOneStep(t *testing.T) {
	rings.Explore(t, "takes seconds")
	explore(t, "onestep", sim.OracleSameEnd, sim.OracleReadyWhenDone)
}

// From there on, all single faults are survived.
func TestSimulationOfSteps(t *testing.T)    { explore(t, "steps") }
func TestSimulationOfChildren(t *testing.T) { explore(t, "children") }
func TestSimulationOfWorkflow(t *testing.T) { explore(t, "workflow") }

// explore simulates a stage. The first of the wanted oracles has to find something, and ends the
// simulation; the others may. Without any, all plans are run, and nothing is to be found.
func explore(t *testing.T, name string, want ...sim.Oracle) {
	t.Helper()
	rings.Test(t, "takes seconds")
	s := stages[slices.IndexFunc(stages, func(s stage) bool { return s.name == name })]
	options := []sim.Option{
		sim.WithoutFault(sim.FaultRecreate, "a CronJob that is created again does not make up for runs that were due before"),
		sim.WithoutFault(sim.FaultDeleteAndCreate, "a CronJob that is created again does not make up for runs that were due before"),
	}
	switch {
	case len(want) == 0:
		options = append(options, sim.WithSample(10))
	case !*allPlans:
		options = append(options, sim.WithStopOn(want[0]))
	}
	report := sim.Explore(t, sim.Workload{
		Scheme: exampletest.NewScheme(t, v1.AddToScheme), CRDs: []string{crds},
		Operator: sim.Manager(func(mgr ctrl.Manager, _ *sim.Process) error {
			return s.of(mgr.GetClient(), mgr.GetScheme(), nil).SetupWithManager(mgr)
		}),
		Script: runsOfAMorning,
	}, options...)
	if report == nil {
		return
	}
	found := map[sim.Oracle]int{}
	for _, f := range report.Findings {
		found[f.Violation.Oracle] += f.Plans
		if !slices.Contains(want, f.Violation.Oracle) {
			t.Error(f.Text)
		}
	}
	if len(want) > 0 && found[want[0]] == 0 {
		t.Errorf("%s has found nothing", want[0])
	}
	t.Logf("%d plans, found by %v", len(report.Plans), found)
}

// runsOfAMorning is a CronJob that starts two Jobs, of which one is kept, and is then suspended.
func runsOfAMorning(w *sim.World) {
	cronJob := newCronJob()
	cronJob.Spec.Schedule, cronJob.Spec.SuccessfulJobsHistoryLimit = "0 */2 * * *", new(int32(1))
	w.Create(cronJob)
	w.Settle()
	for run := 1; run <= 2; run++ {
		w.SleepUntil(time.Duration(2*run)*time.Hour + time.Minute)
		w.Settle()
	}
	sim.Update(w, cronJob, func(c *v1.CronJob) { c.Spec.Suspend = new(true) })
	w.Settle()
	w.Delete(cronJob)
	w.Settle()
}
