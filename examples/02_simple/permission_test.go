// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// What the engine declares and what the operator asks for in a simulation are the same, and the role
// allows that and no more.
func TestRoleIsWhatTheOperatorNeeds(t *testing.T) {
	declared, used := needsOf(t)
	policy, err := sim.ReadRoles("config/rbac")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := policy.Account("")
	if err != nil {
		t.Fatal(err)
	}
	for name, needs := range map[string][]step.Need{"declared": declared, "used": used} {
		c := policy.Compare(operator, needs)
		for _, m := range c.Missing {
			t.Errorf("%s by %q: %s", name, m.By, m.Text)
		}
		for _, g := range c.Unused {
			t.Errorf("not %s: %s", name, g)
		}
	}
}

// Whatever is taken out of the role is missing, by name, and whatever is added is unused.
func TestRoleIsMinimal(t *testing.T) {
	declared, _ := needsOf(t)
	exampletest.CheckRoleIsMinimal(t, declared)
}

// An operator whose role lacks what it uses is refused, and the simulation names the rule.
func TestSimulationNamesTheMissingRule(t *testing.T) {
	_, used := needsOf(t)
	exampletest.CheckRefusals(t, simWorkload, used)
}

func needsOf(t *testing.T) (declared, used []step.Need) {
	return exampletest.Needs(t, simWorkload(t), func(mgr ctrl.Manager, _ *sim.Process) (*step.Engine[*v1.Simple], error) {
		engine, err := step.FromManager(mgr, options, nonZeroDivisor, division)
		return engine, errors.Join(err, control(mgr))
	})
}
