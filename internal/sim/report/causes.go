// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// arrange orders findings, the worst first, and groups those that have the same cause. plans is how
// many plans were run.
//
// One mistake of an operator shows as several kinds of findings: a resource outside is there twice,
// it stays when its object is gone, and the status is another one. A finding is taken for another
// form of a worse one if one of these holds:
//
//   - All its plans show the worse one too, and that is no coincidence: either both are about the
//     same object or line of code, or few enough plans show the worse one.
//   - Most of its plans show the worse one too, and the same line of code made both writes.
//   - All plans of the worse one show it too, and the same line of code wrote the same object. Some
//     oracles judge fewer plans than others.
//   - Both are about the times or about the generations of conditions, and the same line of code wrote
//     them. It writes the whole status, mostly from one stale read.
//   - All plans of both put the same kind of obstacle in the way, such as an orphan, of the same
//     object: what an operator does about it is decided in one place.
func arrange(list []Finding, plans int) []Finding {
	for i := range list {
		list[i].CoveredBy = ""
		slices.SortFunc(list[i].Plans, func(a, b Plan) int { return cmp.Compare(a.Order, b.Order) })
	}
	slices.SortFunc(list, worse)
	var arranged []Finding
	covered := map[string][]Finding{}
	var worst []Finding // of each cause
	for _, f := range list {
		i := slices.IndexFunc(worst, func(w Finding) bool { return covers(w, f, plans) })
		if i < 0 {
			worst = append(worst, f)
			continue
		}
		f.CoveredBy = worst[i].Key
		covered[f.CoveredBy] = append(covered[f.CoveredBy], f)
	}
	for _, f := range worst {
		arranged = append(append(arranged, f), covered[f.Key]...)
	}
	return arranged
}

// worse orders findings: first what makes the operator useless without any fault, and then by class,
// likelihood, oracle and number of plans.
func worse(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(b.first(), a.first()),
		cmp.Compare(a.class(), b.class()),
		cmp.Compare(noted(a.Example), noted(b.Example)),
		cmp.Compare(b.Example.Likelihood, a.Example.Likelihood),
		cmp.Compare(a.Oracle.Rank(), b.Oracle.Rank()),
		cmp.Compare(len(b.Plans), len(a.Plans)),
		cmp.Compare(a.Key, b.Key),
	)
}

// first is 1 for what is to be mended before everything else: the operator is stuck, or does worse,
// without any fault. What other plans show is often a consequence.
func (f Finding) first() int {
	if f.Example.Faults == 0 && f.Example.Text != "" && f.class() <= oracle.ClassLoop {
		return 1
	}
	return 0
}

// noted orders what happens only under some circumstances after the rest.
func noted(e Example) int {
	if e.Note != "" {
		return 1
	}
	return 0
}

// class returns the class whose text the finding has.
func (f Finding) class() oracle.Class {
	var c oracle.Class
	if c.UnmarshalText([]byte(f.Class)) != nil {
		return oracle.ClassDifference // of a newer version
	}
	return c
}

// coincidence is how likely it may be that the plans of one finding show another one by chance.
const coincidence = 0.05

// covers reports whether f is most likely another form of w, which is worse.
func covers(w, f Finding, plans int) bool {
	shows := make(map[int]bool, len(w.Plans))
	for _, p := range w.Plans {
		shows[p.Order] = true
	}
	common := 0
	for _, p := range f.Plans {
		if shows[p.Order] {
			common++
		}
	}
	site := w.Example.Write.Site()
	sameSite := site != "" && site == f.Example.Write.Site()
	if sameSite && w.Oracle == f.Oracle && (f.Oracle == oracle.TransitionTime || f.Oracle == oracle.ObservedGeneration) {
		return true
	}
	if sameObstacle(w, f) && related(w.Example, f.Example) {
		return true
	}
	if common < len(f.Plans) {
		return sameSite && (2*common >= len(f.Plans) || common == len(w.Plans) && related(w.Example, f.Example))
	}
	if sameSite || related(w.Example, f.Example) {
		return true
	}
	return plans > 0 && math.Pow(float64(len(w.Plans))/float64(plans), float64(len(f.Plans))) < coincidence
}

// obstacleOf returns the kind of the faults of a finding, if all of them are of one kind that takes a
// name from the operator.
func obstacleOf(f Finding) (found fault.Kind, ok bool) {
	for _, p := range f.Plans {
		plan, err := fault.ParsePlan(p.Text)
		if err != nil || len(plan.Faults) != 1 {
			return 0, false
		}
		kind := plan.Faults[0].Kind
		if kind == fault.OccupyNameByController {
			kind = fault.OccupyName
		}
		if kind != fault.OccupyName && kind != fault.LeaveOrphan || ok && found != kind {
			return 0, false
		}
		found, ok = kind, true
	}
	return found, ok
}

// sameObstacle reports whether all plans of two findings put the same kind of obstacle in the way.
func sameObstacle(a, b Finding) bool {
	x, ok := obstacleOf(a)
	y, also := obstacleOf(b)
	return ok && also && x == y
}

// related reports whether two examples are about the same object.
func related(a, b Example) bool {
	objects := a.objects()
	return slices.ContainsFunc(b.objects(), func(of string) bool { return slices.Contains(objects, of) })
}

// Arrange orders the findings of the simulation, the worst first, and groups those that have the
// same cause.
func (s *Simulation) Arrange() { s.Findings = arrange(s.Findings, s.Plans.Run) }

// Worst returns the findings that no worse one covers, in order.
func (s *Simulation) Worst() []Finding {
	return slices.DeleteFunc(slices.Clone(s.Findings), func(f Finding) bool { return f.CoveredBy != "" })
}

// Covered returns the findings that another one covers, in order.
func (s *Simulation) Covered(by Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(s.Findings), func(f Finding) bool { return f.CoveredBy != by.Key })
}
