// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
)

var shared = ctrlkittest.SharedControlPlane{Options: controlplane.Options{CRDs: []string{"config/crd/bases"}}}

func TestMain(m *testing.M) {
	plantest.Main(operate)
	os.Exit(shared.Main(m))
}

// The operator does its work against the real API server, with the permissions of its role and no
// others.
func TestOperator(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t))
	mgr, err := simple.Manager(c.Operator(t, "simple"))
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)

	c.Apply(t, "config/samples/simple.yaml")
	seven := exampletest.Await(t, c, "seven-by-two", exampletest.Ready[*v1.Simple])
	if *seven.Status.Quotient != 3 || *seven.Status.Remainder != 1 || seven.Status.ObservedGeneration != seven.Generation {
		t.Errorf("status %+v, want 7 = 3*2 + 1, of generation %d", seven.Status, seven.Generation)
	}
	stalled := func(s *v1.Simple) bool { return exampletest.Reason(s, condition.Stalled) == "DivisorIsZero" }
	one := exampletest.Await(t, c, "one-by-zero", stalled)
	ctrlkittest.CheckConditions(t, seven)
	ctrlkittest.CheckConditions(t, one)

	before := one.DeepCopy()
	one.Spec.Divisor = 5
	exampletest.Must(t, c.Update(t.Context(), one))
	one = exampletest.Await(t, c, "one-by-zero", exampletest.Ready[*v1.Simple])
	ctrlkittest.CheckConditions(t, one)
	ctrlkittest.CheckConditionChange(t, before, one)

	one.Spec.Divisor = 0 // the quotient goes
	exampletest.Must(t, c.Update(t.Context(), one))
	one = exampletest.Await(t, c, "one-by-zero", stalled)
	if one.Status.Quotient != nil || one.Status.Remainder != nil {
		t.Errorf("status %+v, want no result of a division by zero", one.Status)
	}
}
