// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// The environment variables by which ctrlkit rbac asks what an operator needs.
const (
	// RBACVariable may have the value "none": then the operator may do everything, whatever
	// Workload.RBAC says, so that a missing rule does not hide what the operator needs after it.
	RBACVariable = "CTRLKIT_SIM_RBAC"

	// FaultsVariable may have the value "none": then there are only the runs without faults.
	FaultsVariable = "CTRLKIT_SIM_FAULTS"

	withoutRBAC   = "none"
	withoutFaults = "none"
)

// Needs runs a workload once, without faults, and returns what the operator needs permissions for, by
// its requests and their effects, each need with the lines of code that make the requests. What
// Workload.RBAC refuses is needed, too.
//
// It is for tests that compare the needs with declarations and roles. Requests that an operator
// makes only after a fault, such as a read after a conflict, are in the report of [Run], which
// ctrlkit rbac prints.
func Needs(t *testing.T, workload Workload) []permission.Need {
	t.Helper()
	crds := readCRDs(t, &workload)
	s := newSettings(nil)
	workload.rules = s.rules
	r, err := runPlan(t, &workload, crds, fault.Plan{}, nil, s.without)
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	for _, v := range r.violations {
		if slices.Contains(endsExploration, v.Oracle) {
			t.Fatalf("sim: the run is not what the workload means, so that its needs say nothing: %s", v)
		}
	}
	return r.needs
}

// newNeeds are what a worker has reported.
type newNeeds map[string]bool

// of returns those of the needs that were not reported in this form.
func (n newNeeds) of(needs []permission.Need) []permission.Need {
	var list []permission.Need
	for _, need := range needs {
		text, err := json.Marshal(need)
		if err != nil {
			panic(err) // a Need can always be written
		}
		if !n[string(text)] {
			n[string(text)] = true
			list = append(list, need)
		}
	}
	return list
}
