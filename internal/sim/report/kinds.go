// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// An Outcome is what the run of one plan has shown.
type Outcome struct {
	Order      int // the place of the plan in the list of all plans
	Plan       fault.Plan
	Again      string // the command that runs it again
	Requests   int
	Fired      []bool // for each fault of the plan whether it has struck
	Joined     bool   // it has ended where it continued as an earlier plan that has shown nothing from there on
	Violations []oracle.Violation
	Writes     []*Write // for each violation the write that is most likely wrong; nil where that is not known
	Trace      string
}

var (
	uuids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	events    = regexp.MustCompile(`\.[0-9a-f]{14,16}\b`) // as event recorders name Events, by the time
	durations = regexp.MustCompile(`\b\d+(\.\d+)?(h|m|s|ms|µs|ns)(\d+(\.\d+)?(m|s))*\b`)
	generated = regexp.MustCompile(`-([bcdfghjklmnpqrstvwxz2456789]{5}|[0-9a-f]{8,10})\b`) // as API servers and controllers generate names
	digits    = regexp.MustCompile(`\d+`)
)

// normalize replaces what differs between two occurrences of the same mistake.
func normalize(text string) string {
	text = uuids.ReplaceAllString(text, "#")
	text = events.ReplaceAllString(text, ".#")
	text = durations.ReplaceAllString(text, "#")
	text = generated.ReplaceAllString(text, "-*")
	return digits.ReplaceAllString(text, "#")
}

// Key returns what two violations have in common that are of the same kind: the oracle, and what is
// wrong without its numbers and generated names. That is the worst difference where there are
// differences. Otherwise it is the first line of the text and the line of code of the write; the
// name of the object does not matter then.
func Key(v oracle.Violation, w *Write) string {
	if len(v.Differences) > 0 {
		d := v.Worst()
		kind := "differs"
		switch {
		case d.Path == "" && d.Got == "":
			kind = "is missing"
		case d.Path == "":
			kind = "should not be there"
		}
		thing, _, _ := strings.Cut(d.Thing, " #")
		return normalize(strings.Join([]string{string(v.Oracle), thing, d.Path, kind}, " "))
	}
	text, _, _ := strings.Cut(v.Text, "\n")
	site := w.Site()
	if site == "" {
		return string(v.Oracle) + " " + normalize(text)
	}
	if _, key, ok := strings.Cut(w.Object, " "); ok && key != "" {
		text = strings.ReplaceAll(text, key, "*")
	}
	return string(v.Oracle) + " " + normalize(text) + " at " + site
}

// isChange reports whether a transition was run.
func (o Outcome) isChange() bool { return o.Plan.Transition != "" }

// faults counts the faults. A transition counts as one.
func (o Outcome) faults() int {
	if o.isChange() {
		return 1 + len(o.Plan.Faults)
	}
	return len(o.Plan.Faults)
}

// example returns the run of an outcome as an example of one of its violations.
func (o Outcome) example(i int) Example {
	v := o.Violations[i]
	e := Example{
		Plan: Plan{o.Order, o.Plan.String()}, Faults: o.faults(), Likelihood: o.Plan.Likelihood(), Note: o.Plan.Note(), Again: o.Again,
		What: v.Text, Differences: v.Differences, Write: o.write(i),
	}
	if o.Trace != "" {
		e.Trace = strings.Split(strings.TrimRight(o.Trace, "\n"), "\n")
		e.Excerpt = excerpt(e.Trace, v.Entry, e.objects())
		e.Trace = cut(e.Trace)
	}
	return e
}

func (o Outcome) write(i int) *Write {
	if i < len(o.Writes) {
		return o.Writes[i]
	}
	return nil
}

// objects returns the objects that the example is about.
func (e Example) objects() []string {
	var list []string
	for _, d := range e.Differences {
		thing, _, _ := strings.Cut(d.Thing, " #")
		list = append(list, thing)
	}
	if e.Write != nil && e.Write.Object != "" {
		list = append(list, e.Write.Object)
	}
	return list
}

// better orders examples: first those that can always happen, then those with fewer faults, and then
// those that are more likely.
func better(a, b Example) int {
	return cmp.Or(cmp.Compare(noted(a), noted(b)), cmp.Compare(a.Faults, b.Faults), cmp.Compare(b.Likelihood, a.Likelihood), cmp.Compare(a.Order, b.Order))
}

// Fill fills in what the plans that were run have shown. The simulation has to say how many there
// are in total.
func (s *Simulation) Fill(outcomes []Outcome) {
	violated := map[oracle.Name]int{}
	for _, o := range outcomes {
		s.Plans.Run++
		s.Requests += o.Requests
		switch n := o.faults(); {
		case o.isChange():
			s.Plans.Changes++
			s.Plans.Singles += min(1, len(o.Plan.Faults))
		case n == 1:
			s.Plans.Singles++
		case n == 2:
			s.Plans.Pairs++
		case n > 2:
			s.Plans.Swarms++
		}
		if slices.Contains(o.Fired, false) {
			s.Plans.Missed++
		}
		if o.Joined {
			s.Plans.Joined++
		}
		seen := map[oracle.Name]bool{}
		for _, v := range o.Violations {
			if !seen[v.Oracle] {
				seen[v.Oracle] = true
				violated[v.Oracle]++
			}
		}
		if len(seen) > 0 {
			s.Plans.Bad++
		}
	}
	s.Violated = counts(violated)
	s.Findings = kinds(outcomes)
	s.Arrange()
}

// kinds returns one finding for each kind of violation, with the plans that show it.
func kinds(outcomes []Outcome) []Finding {
	var list []Finding
	known := map[string]int{}
	for _, o := range outcomes {
		for i, v := range o.Violations {
			key := Key(v, o.write(i))
			n, ok := known[key]
			if !ok {
				n = len(list)
				known[key] = n
				list = append(list, Finding{})
			}
			f := &list[n]
			plan := Plan{o.Order, o.Plan.String()}
			if !slices.Contains(f.Plans, plan) {
				f.Plans = append(f.Plans, plan)
			}
			e := Example{Plan: plan, Faults: o.faults(), Likelihood: o.Plan.Likelihood(), Note: o.Plan.Note()}
			if f.Key == "" || better(e, f.Example) < 0 {
				f.Show(o, i)
			}
		}
	}
	return list
}

// Show makes a violation of an outcome the example of the finding.
func (f *Finding) Show(o Outcome, i int) {
	v := o.Violations[i]
	about, _ := oracle.About(v.Oracle)
	f.Key, f.Class, f.Oracle, f.Meaning, f.Remedy = Key(v, o.write(i)), v.Class().String(), v.Oracle, about.Meaning, remedyFor(about, o.Plan)
	f.Example = o.example(i)
}
