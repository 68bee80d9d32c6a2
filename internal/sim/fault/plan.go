// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Plan is the faults of one run, and the seed of the order in which things happen that could
// happen in any order. Seed 0 is the order in which watch events arrive at once.
type Plan struct {
	Seed   uint64
	Faults []Fault

	// Transition is the name of what a user changes in the run, and changes back: "shop/a
	// spec.size: minimum, 1". It is empty in a run of the script.
	Transition string
}

// String returns the text form, which [ParsePlan] reads: "seed 7; crash after write 3; refuse write
// 5: 409". That of a transition begins with "change".
func (p Plan) String() string {
	var parts []string
	if p.Seed != 0 {
		parts = append(parts, "seed "+strconv.FormatUint(p.Seed, 10))
	}
	if p.Transition != "" {
		parts = append(parts, change+strings.ReplaceAll(p.Transition, ";", semicolon))
	}
	for _, f := range p.Faults {
		parts = append(parts, f.String())
	}
	if len(parts) == 0 {
		return "no fault"
	}
	return strings.Join(parts, "; ")
}

const (
	change    = "change "
	semicolon = `\u003b` // in a value of a transition, which is JSON
)

// ParsePlan reads the text form of a plan.
func ParsePlan(text string) (Plan, error) {
	var p Plan
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" || part == "no fault" {
			continue
		}
		if number, ok := strings.CutPrefix(part, "seed "); ok {
			seed, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
			if err != nil {
				return Plan{}, fmt.Errorf("plan %q: the seed %q is not a number", text, number)
			}
			p.Seed = seed
			continue
		}
		if name, ok := strings.CutPrefix(part, change); ok {
			p.Transition = strings.TrimSpace(strings.ReplaceAll(name, semicolon, ";"))
			continue
		}
		f, err := Parse(part)
		if err != nil {
			return Plan{}, fmt.Errorf("plan %q: %w", text, err)
		}
		p.Faults = append(p.Faults, f)
	}
	return p, nil
}

// Has reports whether the plan has a fault of a kind.
func (p Plan) Has(kind Kind) bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Kind == kind })
}

// AddsWork reports whether a fault of the plan makes it right to do more than without the fault.
func (p Plan) AddsWork() bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Kind.AddsWork() })
}

// Honest reports whether the operator sees everything as it is and at once in a run of the plan: it
// has no faults, or only such that refuse something and say so.
func (p Plan) Honest() bool {
	return !slices.ContainsFunc(p.Faults, func(f Fault) bool {
		switch f.Kind {
		case FailCall, ThrottleCall:
			return false
		case RefuseWrite:
			return f.How == "404" || f.How == "409" // which says something about the object that is not so
		}
		return true
	})
}

// Hides reports whether a fault of the plan keeps a process from seeing the present state for a
// while: its cache is stale.
func (p Plan) Hides() bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Kind.entry().hides })
}

// Likelihood returns how likely the plan is: as likely as its least likely fault.
func (p Plan) Likelihood() Likelihood {
	least := LikelihoodHigh
	for _, f := range p.Faults {
		least = min(least, f.Kind.Likelihood())
	}
	return least
}

// Note returns the notes of the kinds of the plan's faults, each once; empty if none has one.
func (p Plan) Note() string {
	var notes []string
	for _, f := range p.Faults {
		if note := f.Kind.Note(); note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return strings.Join(notes, "; ")
}

// Compatible reports whether an operator can be expected to survive two faults in one run. It can't
// where two faults together take away what every operator has to rely on:
//
//   - An object that is lost in spite of its finalizer can be cleaned up after only by a process
//     that sees its deletion. Together with a crash or a missed event, none does.
//   - Two processes that work beside each other, with different states of the cluster in their
//     caches, undo each other's writes until both have seen the same, whatever they do.
func Compatible(a, b Fault) bool {
	if a.Kind == b.Kind && a.At == b.At && a.Of == b.Of {
		return false
	}
	x, y := a.Kind.entry(), b.Kind.entry()
	if x.alone || y.alone {
		return false
	}
	return !(x.doubles && y.hides) && !(y.doubles && x.hides)
}
