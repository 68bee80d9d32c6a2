package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// finding is one way in which an oracle was violated, with the first plan that showed it.
type finding struct {
	plan      Plan
	outcome   outcome
	violation Violation
	plans     int // how many plans showed it
}

var digits = regexp.MustCompile(`\d+`)

// kind tells findings apart: the oracle and the text without its numbers, and for differences what differs.
func (v Violation) kind() string {
	text := firstLine(v.Text)
	if len(v.Differences) > 0 {
		d := v.Differences[0]
		text = d.Thing + " " + d.Path
	}
	return string(v.Oracle) + " " + digits.ReplaceAllString(text, "#")
}

// findings groups what went wrong, in the order of the plans.
func findings(plans []Plan, outcomes []outcome) []*finding {
	known := map[string]*finding{}
	var list []*finding
	for i, o := range outcomes {
		for _, v := range o.Violations {
			f, ok := known[v.kind()]
			if !ok {
				f = &finding{plan: plans[i], outcome: o, violation: v}
				known[v.kind()] = f
				list = append(list, f)
			}
			f.plans++
			// The plan with the fewest faults explains best.
			if len(plans[i].Faults) < len(f.plan.Faults) {
				f.plan, f.outcome, f.violation = plans[i], o, v
			}
		}
	}
	return list
}

// traceAround is how many lines of the trace are shown before a fault and after the violation.
const (
	linesBefore = 12
	linesAfter  = 30
)

// excerpt returns the trace around the faults and the violation.
func (f *finding) excerpt() string {
	lines := strings.Split(strings.TrimRight(f.outcome.Trace, "\n"), "\n")
	keep := make([]bool, len(lines))
	for i, line := range lines {
		if !strings.Contains(line, "  fault      ") && !strings.Contains(line, "  fault  ") && i != f.violation.Entry {
			continue
		}
		after := linesAfter
		if i == f.violation.Entry {
			after = 1
		}
		for j := max(0, i-linesBefore); j < min(len(lines), i+after); j++ {
			keep[j] = true
		}
	}
	if !slices.Contains(keep, true) {
		for i := range min(len(lines), linesBefore+linesAfter) {
			keep[i] = true
		}
	}
	var b strings.Builder
	skipped := 0
	for i, line := range lines {
		if !keep[i] {
			skipped++
			continue
		}
		if skipped > 0 {
			fmt.Fprintf(&b, "      ... %d lines ...\n", skipped)
			skipped = 0
		}
		b.WriteString("  " + line + "\n")
	}
	if skipped > 0 {
		fmt.Fprintf(&b, "      ... %d lines ...\n", skipped)
	}
	return b.String()
}

// String tells a finding to a person.
func (f *finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", f.violation.Oracle, f.violation.Text)
	fmt.Fprintf(&b, "\nwith: %s", f.plan)
	if f.plans > 1 {
		fmt.Fprintf(&b, " (and in %d other plans)", f.plans-1)
	}
	if f.outcome.Trace != "" {
		fmt.Fprintf(&b, "\n\nwhat happened:\n%s", f.excerpt())
	}
	return b.String()
}

// summary is the table of what was done.
func summary(plans []Plan, outcomes []outcome, s *settings) string {
	singles, pairs, missed, requests := 0, 0, 0, 0
	bad := map[Oracle]int{}
	for i, o := range outcomes {
		switch len(plans[i].Faults) {
		case 1:
			singles++
		case 2:
			pairs++
		}
		if slices.Contains(o.Fired, false) {
			missed++
		}
		requests += o.Requests
		seen := map[Oracle]bool{}
		for _, v := range o.Violations {
			if !seen[v.Oracle] {
				seen[v.Oracle] = true
				bad[v.Oracle]++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d plans: %d single faults, %d pairs, %d without faults in other orders; %d requests", len(plans), singles, pairs, len(plans)-singles-pairs, requests)
	if missed > 0 {
		fmt.Fprintf(&b, "; in %d plans a fault found no place, because the run had become another one", missed)
	}
	for _, oracle := range slices.Sorted(maps.Keys(bad)) {
		fmt.Fprintf(&b, "\n  %-22s violated in %d plans", oracle, bad[oracle])
	}
	for _, oracle := range slices.Sorted(maps.Keys(s.without)) {
		fmt.Fprintf(&b, "\n  %-22s switched off: %s", oracle, s.without[oracle])
	}
	for _, kind := range slices.Sorted(maps.Keys(s.skipped)) {
		fmt.Fprintf(&b, "\n  faults %q left out: %s", kind, s.skipped[kind])
	}
	return b.String()
}
