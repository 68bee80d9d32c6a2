// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// reference is what a run without faults has shown: what other runs are judged by, and the places
// where faults can strike in them.
type reference struct {
	*judge.Reference
	places []fault.Place
	known  map[string]bool // the kinds of violations that it has shown itself
	fails  bool            // a reconcile has failed at the end of a stage
	needs  []permission.Need
	unused []rbac.Grant // the rules of Workload.RBAC that no run without faults has used
	first  *result
	joins  map[string]bool // marks from which a run has continued without a finding; nil: no run ends early

	changing map[string]*reference // of transitions, by name, for runs of them with faults
}

// endsExploration are the oracles that must hold in a run without faults: without a script that
// can be carried out, or an operator that works until it is idle, there is nothing to compare
// with, and a recorded failure that comes again needs no fault.
var endsExploration = []oracle.Name{
	oracle.ScriptRuns, oracle.OperatorRuns, oracle.BecomesIdle, oracle.BoundedRequests, oracle.NoPanic, oracle.NoGoroutineLeft, oracle.Mended,
}

// news returns the violations of a run that the run without faults has not shown already, each
// with the write that is most likely wrong. That run itself shows all of them, when it is run
// again, and so does every run without a reference.
func (r *reference) news(plan fault.Plan, violations []oracle.Violation, writes []*report.Write) ([]oracle.Violation, []*report.Write) {
	if r == nil || len(plan.Faults) == 0 && plan.Seed == 0 && plan.Transition == "" {
		return violations, writes
	}
	var newViolations []oracle.Violation
	var theirWrites []*report.Write
	for i, v := range violations {
		if !r.known[report.Key(v, nil)] {
			newViolations, theirWrites = append(newViolations, v), append(theirWrites, writes[i])
		}
	}
	return newViolations, theirWrites
}

// findReference runs a workload without faults, several times, and returns what the others are
// judged by, and the first run, which may have violated oracles itself. It returns nil, and the
// run, when that makes other runs pointless: see [endsExploration].
func findReference(t *testing.T, w *Workload, crds []*apiextensionsv1.CustomResourceDefinition, s *settings) (*reference, *result, error) {
	first, err := runPlan(t, w, crds, fault.Plan{}, nil, s.silent())
	if err != nil || slices.ContainsFunc(first.violations, func(v oracle.Violation) bool { return slices.Contains(endsExploration, v.Oracle) }) {
		return nil, first, err
	}
	if first.run.aborted {
		return nil, nil, s.without.hides()
	}
	r := first.asReference()
	for _, v := range first.violations {
		r.known[report.Key(v, nil)] = true
		r.fails = r.fails || v.Oracle == oracle.EndsWell
	}
	for seed := uint64(1); seed <= learningRuns; seed++ {
		other, err := runPlan(t, w, crds, fault.Plan{Seed: seed}, nil, s.silent())
		if err != nil {
			return nil, other, err
		}
		r.Learn(other.checkpoints)
		r.needs = permission.Merge(r.needs, other.needs)
		unused := other.run.unusedRules()
		r.unused = slices.DeleteFunc(r.unused, func(g rbac.Grant) bool {
			return !slices.ContainsFunc(unused, func(other rbac.Grant) bool { return other.String() == g.String() })
		})
	}
	return r, first, nil
}

// hides returns an error for a run that has ended early by an oracle that is switched off.
func (s oracleSet) hides() error {
	var off []string
	for _, name := range endsExploration {
		if _, is := s[name]; is {
			off = append(off, string(name))
		}
	}
	return fmt.Errorf("the run without faults has ended early, and WithoutOracle switches off the oracle that says why, one of %s: there is nothing to compare other runs with, "+
		"so take that option out", strings.Join(off, ", "))
}

// learningRuns is how many runs without faults, in other orders, are compared to learn which
// fields differ anyway.
const learningRuns = 3

// asReference makes a run without faults the one by which others are judged.
func (r *result) asReference() *reference {
	checkpoints := slices.Clone(r.checkpoints[:r.run.ended+1]) // in which names are replaced that differ from run to run
	watched, withholdable, usesClock := r.run.watches.kinds(), r.run.cluster.Withholdable(), r.run.processes.clockUsed()
	return &reference{
		first:     r,
		changing:  map[string]*reference{},
		known:     map[string]bool{},
		needs:     r.needs,
		unused:    r.run.unusedRules(),
		Reference: r.run.judge.Reference(checkpoints, r.requests),
		places: r.run.catalog.Places(len(checkpoints), func(p *fault.Place) {
			p.Watched, p.Withholdable, p.UsesClock = watched, withholdable, usesClock
		}),
	}
}
