// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// The limits of shrinking: how often a plan is replaced by a simpler one, and how many plans are
// tried to find which of its faults are needed.
const (
	maxShrinks = 6
	maxFewer   = 250
)

// Fill fills in what plans have shown, and makes the plans of the findings smaller that are printed in
// full, where a smaller one shows the same. It returns the outcomes of these plans.
func (e *Explorer) Fill(ctx context.Context, s *report.Simulation, list []report.Outcome) []report.Outcome {
	s.Plans.Total = len(list)
	for _, kind := range s.Plans.NotRun {
		s.Plans.Total += kind.Plans
	}
	s.Fill(list)
	var smaller []report.Outcome
	for n, f := range s.Worst() {
		if n == report.DefaultFull || s.Stopped == report.Interrupted {
			break
		}
		plan, err := fault.ParsePlan(f.Example.Text)
		if err != nil || e.OnlyFewer && len(plan.Faults) < 2 {
			continue
		}
		simplest, o, ok := e.Shrink(ctx, plan, f)
		if !ok {
			continue
		}
		shrunk := e.Report(Ran{f.Example.Order, simplest, o})
		at := slices.IndexFunc(s.Findings, func(other report.Finding) bool { return other.Key == f.Key })
		s.Findings[at].Show(shrunk, shows(o, f))
		s.Findings[at].Key = f.Key // what differs most may be something else now
		smaller = append(smaller, shrunk)
	}
	return smaller
}

// Shrink returns the simplest plan that it finds which shows the same as plan: with fewer faults,
// with faults that are more likely or have smaller numbers, and without an order that does not
// matter.
func (e *Explorer) Shrink(ctx context.Context, plan fault.Plan, shown report.Finding) (simplest fault.Plan, o Outcome, simpler bool) {
	quiet := *e // these plans are not among those that are counted
	quiet.Progress, quiet.Found, quiet.Repeat, quiet.Stop = func(Progress) {}, nil, 0, e.Rest
	simplest, o, simpler = fewer(plan, func(plans []fault.Plan) (int, Outcome, error) { return quiet.first(ctx, plans, shown) })
	for range maxShrinks {
		candidates := e.simpler(simplest)
		if len(candidates) == 0 {
			break
		}
		i, found, err := quiet.first(ctx, candidates, shown)
		if err != nil || i < 0 {
			break
		}
		simplest, o, simpler = candidates[i], found, true
	}
	if simpler && e.Repeat > 0 {
		quiet.Repeat = e.Repeat
		quiet.again(ctx, simplest, &o)
	}
	return simplest, o, simpler
}

// again runs the plan again that is the simplest: see [Explorer.confirm].
func (e *Explorer) again(ctx context.Context, plan fault.Plan, o *Outcome) {
	r, err := e.Start()
	if err != nil {
		return
	}
	defer r.Stop()
	_ = e.confirm(ctx, r, plan, o) //nolint:errcheck // it was run before: what it has shown stands
}

// fewer returns a plan with as few of the faults of a plan as are needed to show the same, by delta
// debugging: it leaves out halves, then quarters, and at last single faults, until each fault is
// needed. Then it tries the same with other numbers. A plan of two faults is left to simpler. The function first returns which of several plans
// is the first that shows the same, or -1.
func fewer(plan fault.Plan, first func([]fault.Plan) (int, Outcome, error)) (fewest fault.Plan, o Outcome, fewer bool) {
	fewest = plan
	tried := 0
	for parts := 2; len(fewest.Faults) > 2; {
		renumbers := parts > len(fewest.Faults) // no part can be left out as it is
		candidates := withoutParts(fewest, min(parts, len(fewest.Faults)))
		if renumbers {
			candidates = renumbered(fewest)
		}
		if tried += len(candidates); tried > maxFewer {
			break
		}
		i, found, err := first(candidates)
		switch {
		case err != nil:
			return fewest, o, fewer
		case i >= 0:
			if i < parts || renumbers { // a part alone, or another run
				parts = 3
			}
			parts = max(2, parts-1)
			fewest, o, fewer = candidates[i], found, true
		case renumbers:
			return fewest, o, fewer
		case parts == len(fewest.Faults):
			parts++
		default:
			parts = min(2*parts, len(fewest.Faults))
		}
	}
	return fewest, o, fewer
}

// withoutParts returns the plans that have one of several parts of the faults of a plan, and those
// that lack one.
func withoutParts(plan fault.Plan, parts int) []fault.Plan {
	var only, without []fault.Plan
	n := len(plan.Faults)
	for i := range parts {
		begin, end := i*n/parts, (i+1)*n/parts
		of := func(faults ...fault.Fault) fault.Plan {
			return fault.Plan{Transition: plan.Transition, Faults: faults, Seed: plan.Seed}
		}
		only = append(only, of(plan.Faults[begin:end]...))
		if parts > 2 {
			without = append(without, of(slices.Concat(plan.Faults[:begin], plan.Faults[end:])...))
		}
	}
	return append(only, without...)
}

// renumbered returns the plans that lack one of the faults of a plan, and in which a later write has
// the number before: the operator has one write less to make when a fault is gone.
func renumbered(plan fault.Plan) []fault.Plan {
	var list []fault.Plan
	for i := range plan.Faults {
		left := slices.Delete(slices.Clone(plan.Faults), i, i+1)
		last := 0
		for _, from := range left {
			if from.Kind.Point() != fault.AtWrite || from.At <= max(1, last) {
				continue
			}
			last = from.At
			faults := slices.Clone(left)
			for k, f := range faults {
				if f.Kind.Point() == fault.AtWrite && f.At >= from.At {
					faults[k].At--
				}
			}
			if compatible(faults) {
				list = append(list, fault.Plan{Transition: plan.Transition, Faults: faults, Seed: plan.Seed})
			}
		}
	}
	return list
}

// first returns the first of several plans that shows the same as a violation, or -1. Most of the
// plans after it are not run.
func (e *Explorer) first(ctx context.Context, plans []fault.Plan, shown report.Finding) (int, Outcome, error) {
	e.Until = []oracle.Name{shown.Oracle}
	for begin := 0; begin < len(plans); {
		before := begin
		outcomes, err := e.Run(ctx, plans[begin:])
		if err != nil {
			return -1, Outcome{}, err
		}
		for _, o := range outcomes {
			if o.Plan == "" {
				break // an earlier one violates the oracle, but shows something else
			}
			if shows(o, shown) >= 0 {
				return begin, o, nil
			}
			begin++
		}
		if begin == before {
			break // the time of the test is over
		}
	}
	return -1, Outcome{}, nil
}

// shows returns which violation of an outcome is of the kind of a finding of another plan, or -1.
func shows(o Outcome, f report.Finding) int {
	for i, v := range o.Violations {
		if report.Key(v, o.write(i)) == f.Key {
			return i
		}
	}
	if len(f.Example.Differences) == 0 {
		return -1
	}
	first := f.Example.Differences[0]
	return slices.IndexFunc(o.Violations, func(v oracle.Violation) bool {
		return v.Oracle == f.Oracle && slices.ContainsFunc(v.Differences, func(d oracle.Difference) bool {
			return d.Thing == first.Thing && d.Path == first.Path
		})
	})
}

// simpler returns the plans that are one step simpler than a plan, the simplest first.
func (e *Explorer) simpler(plan fault.Plan) []fault.Plan {
	var list []fault.Plan
	for _, f := range plan.Faults {
		if len(plan.Faults) == 2 { // of more, fewer has found out which are needed
			list = append(list, fault.Plan{Transition: plan.Transition, Faults: []fault.Fault{f}})
			if plan.Seed != 0 {
				list = append(list, fault.Plan{Transition: plan.Transition, Faults: []fault.Fault{f}, Seed: plan.Seed})
			}
		}
	}
	if plan.Seed != 0 {
		list = append(list, fault.Plan{Transition: plan.Transition, Faults: plan.Faults})
	}
	if e.OnlyFewer {
		return list
	}
	for i, f := range plan.Faults {
		for _, milder := range f.Milder(e.place(f)) {
			if !e.Allowed(milder.Kind) {
				continue
			}
			faults := slices.Clone(plan.Faults)
			faults[i] = milder
			if compatible(faults) {
				list = append(list, fault.Plan{Transition: plan.Transition, Faults: faults, Seed: plan.Seed})
			}
		}
	}
	return list
}

func compatible(faults []fault.Fault) bool {
	for i, a := range faults {
		for _, b := range faults[:i] {
			if !fault.Compatible(a, b) {
				return false
			}
		}
	}
	return true
}

// place returns the place of a fault in the run without faults, or nil.
func (e *Explorer) place(f fault.Fault) *fault.Place {
	i := slices.IndexFunc(e.Places, func(p fault.Place) bool {
		return p.Point == f.Kind.Point() && p.At == f.At && (p.Point != fault.AtEvent || p.Of == f.Of)
	})
	if i < 0 {
		return nil
	}
	return &e.Places[i]
}
