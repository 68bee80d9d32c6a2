// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A result is what one run of a workload has shown.
type result struct {
	plan        fault.Plan
	violations  []oracle.Violation
	writes      []*report.Write // for each violation, the write that is most likely wrong
	fired       []bool          // for each fault of the plan, whether the run came to its place
	trace       *trace.Trace
	requests    int // of the operator, without Kubernetes Events
	checkpoints []snapshot.Snapshot
	leaked      bool              // goroutines are left that do not end
	needs       []permission.Need // of the operator
	run         *run
}

// runPlan runs a workload once. A transition takes two runs.
func runPlan(t *testing.T, workload *Workload, crds []*apiextensionsv1.CustomResourceDefinition, plan fault.Plan, ref *reference, without oracleSet) (*result, error) {
	if plan.Transition != "" {
		return runTransition(t, workload, crds, plan, ref, without)
	}
	return runOnce(t, workload, crds, plan, ref, without)
}

// runOnce runs a workload once, in a bubble of its own.
func runOnce(t *testing.T, workload *Workload, crds []*apiextensionsv1.CustomResourceDefinition, plan fault.Plan, ref *reference, without oracleSet) (result *result, err error) {
	prepareNetwork()
	if workload.rules.Network == "" {
		defer watchNetwork()()
	}
	before := runtime.NumGoroutine() // what there is outside of the bubble is no leak
	defer func() {
		// Goroutines that nothing can wake end the bubble with a panic: they have been reported
		// already.
		if r := recover(); r != nil && !strings.Contains(fmt.Sprint(r), "blocked goroutines remain") {
			panic(r)
		}
	}()
	defer withoutErrorLog()()
	synctest.Test(t, func(t *testing.T) {
		var r *run
		r, err = newRun(workload, crds, plan, ref, without)
		if err != nil {
			return
		}
		// A plan has to show the same each time, so nothing may be random but by its seed. That
		// begins here: the first run of a process makes what later ones share, and draws numbers.
		if workload.rules.Network == "" {
			defer guardNetwork(r.networkRefused)()
		}
		seedGlobals(t, plan.Seed)
		seedCrypto(t, plan.Seed)
		result = r.drive(before, (&World{member: r.fakes.Member(), run: r}).play)
	})
	return result, err
}

// withoutErrorLog takes out apimachinery's handlers of errors, which log each request that a fault
// has refused. It returns what puts them back.
func withoutErrorLog() (restore func()) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	return func() { utilruntime.ErrorHandlers = handlers }
}

// seedGlobals makes the global sources of random numbers give the same numbers in each run:
// client-go adds jitter to its waits.
func seedGlobals(t *testing.T, seed uint64) {
	if !strings.Contains(os.Getenv("GODEBUG"), "randseednop") {
		if err := os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",randseednop=0", ",")); err != nil {
			t.Fatal(err)
		}
	}
	//lint:ignore SA1019 there is no other way to reach the sources of other packages
	rand.Seed(int64(seed) + 1)
	utilrand.Seed(int64(seed) + 1)
}

// seedCrypto makes crypto/rand give the same bytes in each run, for operators that make identifiers
// with it.
func seedCrypto(t *testing.T, seed uint64) {
	defer func() {
		_ = recover() //nolint:errcheck // a parallel test can't have it, and then the identifiers differ
	}()
	cryptotest.SetGlobalRandom(t, seed+1)
}
