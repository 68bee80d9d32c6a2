// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// What the engine declares and what the operator asks for in a simulation are the same, and the role
// allows that and no more.
func TestRoleIsWhatTheOperatorNeeds(t *testing.T) {
	declared, used := exampletest.Needs(t, simWorkload(t), func(mgr ctrl.Manager, p *sim.Process) (*step.Engine[*v1.Website], error) {
		dns := simDNS{p.External("dns")}
		engine, err := step.FromManager(mgr, options, readSecret, newParts(), newRecord(dns))
		return engine, errors.Join(err, control(dns)(mgr))
	})
	exampletest.CheckRole(t, declared, used)
	exampletest.CheckRoleIsMinimal(t, declared)
}
