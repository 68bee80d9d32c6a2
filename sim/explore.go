// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// plans lists what is run: transitions, some of them with a fault, or the script with faults.
func (r *Report) plans(t *testing.T, ref *reference) ([]fault.Plan, error) {
	if r.settings.transitions == nil {
		return ref.plans(r.settings), nil
	}
	if r.settings.Only {
		return nil, nil
	}
	list, err := ref.transitions(r.crds, r.settings.transitions)
	if err != nil || r.settings.faults == 0 {
		return list, err
	}
	all := slices.Clone(list)
	for i, p := range list {
		more, err := r.withFaults(t, ref, p, i*r.settings.faults)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// withFaults returns plans of a transition with one fault each, from a place on in the order in
// which faults are tried.
func (r *Report) withFaults(t *testing.T, ref *reference, p fault.Plan, from int) ([]fault.Plan, error) {
	c, err := ref.change(r.crds, p.Transition)
	if err != nil {
		return nil, err
	}
	of := *r.workload
	of.course = &course{change: c}
	first, err := runOnce(t, &of, r.crds, fault.Plan{}, nil, r.settings.silent())
	if err != nil || first.ends() {
		return nil, err
	}
	before := map[string]bool{}
	for _, f := range explore.Faults(ref.places, func(fault.Kind) bool { return true }) {
		before[f.String()] = true
	}
	var singles []fault.Plan
	for _, f := range first.asReference().plans(r.settings) {
		if len(f.Faults) == 1 && !before[f.Faults[0].String()] {
			singles = append(singles, f)
		}
	}
	var list []fault.Plan
	order := explore.Order(singles, nil)
	for i := range min(r.settings.faults, len(order)) {
		with := singles[order[(from+i)%len(order)]]
		list = append(list, fault.Plan{Transition: p.Transition, Faults: with.Faults})
	}
	return list, nil
}
