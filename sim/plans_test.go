// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// measured are an operator with one object, three children and a resource outside the cluster, and one
// beside players that play a Deployment and its Pods.
func measured() map[string]*Workload {
	alone, played := deploymentWorkload(func(ctx context.Context, o *operation) error {
		err := o.keepBucket(ctx, mistakes{})
		for _, name := range []string{"a", "b", "c"} {
			if err == nil && o.obj.DeletionTimestamp == nil {
				child := o.child()
				child.Name = name
				err = o.ensure(ctx, child)
			}
		}
		return err
	}), copyWorkload()
	script := played.Script
	played.Script = func(w *World) {
		w.Create(newDeployment())
		w.Settle()
		script(w)
		w.Delete(newDeployment())
		w.Settle()
	}
	return map[string]*Workload{"alone": &alone, "played": &played}
}

// How many plans one core runs in a second: EXPLORE=1 GOMAXPROCS=1 go test -run PlansPerSecond -v ./sim.
// Nothing is asserted, as machines differ.
func TestPlansPerSecond(t *testing.T) {
	rings.Explore(t, "measures")
	for name, workload := range measured() {
		ref, plans := planned(t, workload)
		collectLess()
		began := time.Now()
		for _, plan := range plans {
			if _, err := runPlan(t, workload, nil, plan, ref, oracleSet{}); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %.0f plans a second", name, float64(len(plans))/time.Since(began).Seconds())
	}
}

// A plan must not depend on the plans that the same process has run before, although servers share
// definitions, namespaces, discovery documents and the results of pure functions.
func TestPlansDoNotDependOnEarlierPlans(t *testing.T) {
	rings.Test(t, "simulates for a while")
	for name, workload := range measured() {
		t.Run(name, func(t *testing.T) {
			ref, plans := planned(t, workload)
			traces := map[int]string{}
			for range 2 {
				for i := 0; i < len(plans); i += 40 {
					result, err := runPlan(t, workload, nil, plans[i], ref, oracleSet{})
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
		})
	}
}

// planned returns the run without faults of a workload without definitions, and all of its plans.
func planned(t *testing.T, workload *Workload) (*reference, []fault.Plan) {
	t.Helper()
	ref, first, err := findReference(t, workload, nil, newSettings(nil))
	if err != nil {
		t.Fatal(err)
	}
	if ref == nil {
		t.Fatal(first.violations, first.trace)
	}
	return ref, ref.plans(newSettings(nil))
}
