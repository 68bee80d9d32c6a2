// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// flaps returns an operator with a condition that comes and goes.
func flaps(ctx context.Context, o *operation, _ bool) error {
	kind := appsv1.DeploymentAvailable
	if o.obj.Generation > 1 {
		kind = appsv1.DeploymentReplicaFailure
	}
	return o.condition(ctx, kind, corev1.ConditionTrue, false)
}

// What a run without faults violates is found once, and other plans are run all the same: they show
// only what is new.
func TestViolationsWithoutFaults(t *testing.T) {
	rings.Test(t, "simulates for a while")
	w := oneMistake(flaps)(false)
	ref, first, err := findReference(t, &w, nil, newSettings(nil))
	if err != nil {
		t.Fatal(err)
	}
	if ref == nil || len(first.violations) != 1 || first.violations[0].Oracle != oracle.ConditionsStay {
		t.Fatalf("got %v, want the condition that has vanished, and a reference", first.violations)
	}
	other := oracle.Violation{Oracle: oracle.NoLeak, Text: "something new"}
	plan := fault.Plan{Faults: []fault.Fault{{Kind: fault.CrashAfterWrite, At: 1}}}
	if news, _ := ref.news(plan, append(first.violations, other), append(first.writes, nil)); len(news) != 1 || news[0].Oracle != oracle.NoLeak {
		t.Errorf("news are %v, want %v", news, other)
	}
	if news, _ := ref.news(fault.Plan{}, first.violations, first.writes); len(news) != 1 {
		t.Errorf("the run without faults shows %v when it is run again", news)
	}

	w.rules = newSettings([]Option{ComesAndGoes("Available")}).rules
	if _, first, err = findReference(t, &w, nil, newSettings(nil)); err != nil || len(first.violations) > 0 {
		t.Errorf("a condition that is declared to come and go: %v, %v", first.violations, err)
	}
}

// Without an operator that works until it is idle, there is nothing to compare other runs with.
func TestGraveViolationsEndTheExploration(t *testing.T) {
	w := deploymentWorkload(nil)
	w.Operator = func(context.Context, *Process) error { return errors.New("no more") }
	ref, first, err := findReference(t, &w, nil, newSettings(nil))
	if err != nil || ref != nil || len(first.violations) == 0 {
		t.Errorf("got the reference %v, %v and %v, want none", ref, first, err)
	}
}

// An oracle that has to end the exploration can't be switched off in silence where it does not
// hold.
func TestSwitchedOffEnds(t *testing.T) {
	rings.Test(t, "simulates")
	busy := deploymentWorkload(func(ctx context.Context, o *operation) error {
		o.requeueAfter = 10 * time.Minute
		if o.obj.DeletionTimestamp != nil {
			return nil
		}
		before := o.obj.DeepCopy()
		metav1.SetMetaDataAnnotation(&o.obj.ObjectMeta, "phase", "since "+time.Now().Truncate(o.requeueAfter).Format(time.RFC3339))
		return o.Patch(ctx, o.obj, client.MergeFrom(before))
	})
	busy.Quiet = 15 * time.Minute
	wrong := deploymentWorkload(func(context.Context, *operation) error { return nil })
	wrong.Script = func(w *World) { w.SleepUntil(-time.Hour) }
	for name, w := range map[oracle.Name]Workload{oracle.BecomesIdle: busy, oracle.ScriptRuns: wrong} {
		if ref, _, err := findReference(t, &w, nil, newSettings(nil)); ref != nil || err != nil {
			t.Errorf("%s: got a reference and %v", name, err)
		}
		_, _, err := findReference(t, &w, nil, newSettings([]Option{WithoutOracle(name, "a test")}))
		if err == nil || !strings.Contains(err.Error(), string(name)) {
			t.Errorf("%s, switched off: got %v", name, err)
		}
	}
}
