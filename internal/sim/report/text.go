// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// A Style says how text is written.
type Style struct {
	Color bool // with the colors of a terminal
	Full  int  // how many findings are written in full, the worst ones
}

// DefaultFull is how many findings a report of a test has in full.
const DefaultFull = 5

// The colors of a terminal.
const (
	bold  = "1"
	red   = "31;1"
	faint = "2"
)

func (st Style) paint(color, text string) string {
	if !st.Color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// Text writes the document as a person reads it in a terminal.
func (d *Document) Text(w io.Writer, st Style) error {
	d, err := d.indented()
	if err != nil {
		return err
	}
	var b strings.Builder
	for i := range d.Simulations {
		s := &d.Simulations[i]
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s  %s\n", st.paint(bold, s.Title()), st.paint(faint, s.Package))
		b.WriteString(s.Summary() + "\n")
		if len(s.Findings) == 0 {
			continue
		}
		b.WriteString("\n" + s.Overview(st) + "\n")
		for n, f := range s.Worst() {
			if n < st.Full {
				fmt.Fprintf(&b, "\n%s %s\n\nagain: %s\n", st.paint(bold, fmt.Sprintf("%d.", n+1)), s.InFull(f, st), f.Example.Again)
			}
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	return nil
}

// indented returns a copy in which no line of a text begins where those of the report do: a report
// that another one has sent can't add lines to it.
func (d *Document) indented() (*Document, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("copying a report: %w", err)
	}
	c := &Document{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("copying a report: %w", err)
	}
	indent(reflect.ValueOf(c))
	return c, nil
}

var flush = regexp.MustCompile(`\r*\n\r*(\S)`)

func indent(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			indent(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			indent(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			indent(v.Index(i))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(flush.ReplaceAllString(v.String(), "\n    $1"))
		}
	}
}

// Overview returns one line at least for each finding: what is wrong, how many plans show it, one
// of them, and the line of code.
func (s *Simulation) Overview(st Style) string {
	var b strings.Builder
	worst := s.Worst()
	fmt.Fprintf(&b, "%s in %s of %s plans, the worst first:\n", plural(len(worst), "finding"), number(s.Plans.Bad), number(s.Plans.Run))
	for i, f := range worst {
		fmt.Fprintf(&b, "\n%2d. %s: %s\n", i+1, st.paint(red, f.Class), f.line())
		b.WriteString(st.paint(faint, "    "+f.where()) + "\n")
		if f.first() > 0 && i+1 < len(worst) && worst[i+1].first() == 0 {
			b.WriteString("    mend what needs no fault first: the findings below may be its consequences\n")
		}
		for _, other := range s.Covered(f) {
			fmt.Fprintf(&b, "    also seen as %s: %s\n", other.Class, other.line())
			b.WriteString(st.paint(faint, "        "+other.where()) + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// line says what is wrong in one line.
func (f Finding) line() string {
	return Line(oracle.Violation{Oracle: f.Oracle, Text: f.Example.What, Differences: f.Example.Differences})
}

// Line says in one line what is wrong, the worst difference where there are differences, and which
// oracle says it.
func Line(v oracle.Violation) string {
	text, _, _ := strings.Cut(v.Text, "\n")
	by := string(v.Oracle)
	if n := len(v.Differences); n > 0 {
		text = v.Worst().Sentence()
		if n > 1 {
			by += ", and " + plural(n-1, "other difference")
		}
	}
	return shorten(text, 200) + " (" + by + ")"
}

// placeOf matches how plans name a request.
var placeOf = regexp.MustCompile(`\b(write|read|call) \d+\b`)

// located returns the plan with the requests that it names by their numbers.
func (e Example) located() string {
	return placeOf.ReplaceAllStringFunc(e.Text, func(place string) string {
		for _, m := range momentsOf(e.Trace) {
			if m.what+" "+m.number == place {
				return place + " (" + labelOf(&m) + ")"
			}
		}
		return place
	})
}

// where says which plans show the finding and which line of code made the write.
func (f Finding) where() string {
	text := "with: " + f.Example.located()
	if f.Example.Note != "" {
		text += " [" + f.Example.Note + "]"
	}
	if n := len(f.Plans); n > 1 {
		text += fmt.Sprintf(", one of %s plans", number(n))
	}
	if site := f.Example.Write.Site(); site != "" {
		text += "; at " + site
	}
	return text
}

// InFull returns everything about a finding that belongs on a screen: what is wrong, the plan, the
// write, the remedy and what happened.
func (s *Simulation) InFull(f Finding, st Style) string {
	var b strings.Builder
	e := f.Example
	fmt.Fprintf(&b, "%s: %s\n%s\nwith: %s", st.paint(red, f.Class), f.line(), wrap(f.Meaning), e.located())
	if n := len(f.Plans) - 1; n > 0 {
		fmt.Fprintf(&b, " (and in %s: %s)", plural(n, "other plan"), faultsOf(f.others()))
	}
	b.WriteString("\n")
	if e.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", e.Note)
	}
	if len(e.Differences) > 0 || strings.Contains(e.What, "\n") {
		b.WriteString("\n" + e.What + "\n" + differences(e))
	}
	if e.Write != nil {
		b.WriteString("\n" + e.Write.String())
	}
	if f.Remedy != "" {
		b.WriteString("\n" + wrap("remedy: "+f.Remedy))
	}
	if covered := s.Covered(f); len(covered) > 0 {
		b.WriteString("\nalso seen as:\n")
		for _, other := range covered {
			fmt.Fprintf(&b, "  %s, with: %s, in %s\n", other.line(), other.Example.Text, plural(len(other.Plans), "plan"))
		}
	}
	if len(e.Excerpt) > 0 {
		fmt.Fprintf(&b, "\nwhat happened:\n  %s\n", strings.Join(e.Excerpt, "\n  "))
	}
	return strings.TrimRight(b.String(), "\n")
}

// mostDifferences is how many of the differences are printed.
const mostDifferences = 20

// differences returns those that the text does not have.
func differences(e Example) string {
	if len(e.Differences) == 0 || strings.Contains(e.What, e.Differences[0].String()) {
		return ""
	}
	var b strings.Builder
	for _, d := range e.Differences[:min(len(e.Differences), mostDifferences)] {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	if more := len(e.Differences) - mostDifferences; more > 0 {
		fmt.Fprintf(&b, "  and %s\n", plural(more, "other difference"))
	}
	return b.String()
}

// String returns the write in some lines: the request, the lines of code, and what changed.
func (w *Write) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s: %s", w.What, w.Actor, w.Request)
	if w.Answer != "" {
		b.WriteString(" -> " + w.Answer)
	}
	b.WriteString("\n")
	for i, site := range w.Stack {
		by := "at"
		if i > 0 {
			by = "called at"
		}
		fmt.Fprintf(&b, "  %s %s in %s\n", by, site, site.Function)
	}
	for _, change := range w.Changes {
		b.WriteString("    " + change + "\n")
	}
	return b.String()
}

// others returns the plans that show the finding without the example.
func (f Finding) others() []Plan {
	return slices.DeleteFunc(slices.Clone(f.Plans), func(p Plan) bool { return p.Order == f.Example.Order })
}

// faultsOf counts the plans by the kinds of their faults.
func faultsOf(plans []Plan) string {
	const most = 4
	counts := map[string]int{}
	var names []string
	for _, p := range plans {
		parsed, err := fault.ParsePlan(p.Text)
		name := "no fault"
		if err == nil && parsed.Transition != "" {
			name = "change"
		}
		if err == nil && len(parsed.Faults) > 0 {
			name = shortName(parsed.Faults[0].Kind)
		}
		if err == nil && len(parsed.Faults) > 1 {
			name = "pair of faults"
		}
		if err == nil && len(parsed.Faults) > 2 {
			name = "swarm of faults"
		}
		if counts[name]++; counts[name] == 1 {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for i, name := range names {
		names[i] = strconv.Itoa(counts[name]) + " × " + name
	}
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return strings.Join(names, ", ")
}

// shortName returns the words of a kind of faults up to its first parameter.
func shortName(k fault.Kind) string {
	text, _, _ := strings.Cut(k.String(), " {")
	for _, suffix := range []string{":", " of", " by"} {
		text = strings.TrimSuffix(text, suffix)
	}
	return text
}

// Summary returns what was done: the plans, the oracles that were violated, and what is switched
// off.
func (s *Simulation) Summary() string {
	var b strings.Builder
	p := s.Plans
	switch {
	case p.Changes > 0 && p.Singles == 0:
		fmt.Fprintf(&b, "%d transitions; %d requests", p.Changes, s.Requests)
	case p.Changes > 0:
		fmt.Fprintf(&b, "%d transitions, %d of them with a fault; %d requests", p.Changes, p.Singles, s.Requests)
	default:
		swarms := ""
		if p.Swarms > 0 {
			swarms = fmt.Sprintf("%d of a swarm, ", p.Swarms)
		}
		fmt.Fprintf(&b, "%d plans: %d single faults, %d pairs, %s%d without faults in other orders; %d requests",
			p.Run, p.Singles, p.Pairs, swarms, p.Run-p.Singles-p.Pairs-p.Swarms, s.Requests)
	}
	if p.Missed > 0 {
		fmt.Fprintf(&b, "; in %d plans a fault found no place, because the run had become another one", p.Missed)
	}
	if p.Joined > 0 {
		fmt.Fprintf(&b, "; %d ended early, as an earlier one has continued in the same way and shown nothing", p.Joined)
	}
	if len(s.Shards) > 0 {
		fmt.Fprintf(&b, "\n  only shard %s of the plans", strings.Join(s.Shards, " and "))
	}
	if text := s.Incomplete(); text != "" {
		b.WriteString("\n  " + text)
	}
	for _, c := range s.Violated {
		fmt.Fprintf(&b, "\n  %-22s violated in %d plans", c.Oracle, c.Plans)
	}
	for _, off := range s.Off {
		b.WriteString("\n  " + off.String())
	}
	if len(s.UnusedRules) > 0 {
		b.WriteString("\n  RBAC rules that the script does not need: remove them, or extend the script")
	}
	for _, rule := range s.UnusedRules {
		b.WriteString("\n    " + rule)
	}
	if len(s.UncheckedRules) > 0 {
		b.WriteString("\n  RBAC rules unchecked, because this simulation does not run their controllers: " + strings.Join(s.UncheckedRules, "; "))
	}
	return b.String()
}

// Incomplete says how many plans were run, and how to run the others; it is empty if all were run.
func (s *Simulation) Incomplete() string {
	if s.Stopped == "" {
		return ""
	}
	if s.Stopped == Sample {
		return fmt.Sprintf("a sample of %s plans: -sim.shard=1/1 runs all", number(s.Plans.Total))
	}
	if budget, ok := strings.CutPrefix(s.Stopped, Budget); ok {
		return fmt.Sprintf("budget %s: %s of %s plans%s%s; the budget full runs all", budget, number(s.Plans.Run), number(s.Plans.Total), s.tooFew(), s.notRun())
	}
	text := fmt.Sprintf("stopped after %s of %s plans: %s", number(s.Plans.Run), number(s.Plans.Total), s.Stopped)
	if s.Stopped == TimeLimit {
		text += "; run the others with a longer -timeout, or split them with -sim.shard"
	}
	return text + s.tooFew() + s.notRun()
}

// tooFew says that a simulation is no success: see [Simulation.TooFew].
func (s *Simulation) tooFew() string {
	if !s.TooFew() {
		return ""
	}
	return ": too few to find anything; give it more time, or see why a plan takes so long"
}

// fewest is how many plans a simulation has to run: with fewer, it has tried less than one of each
// kind of fault.
const fewest = 20

// TooFew reports whether a simulation was stopped before it could find anything, so that it is no
// success. A budget that has a name has as few plans as are wanted.
func (s *Simulation) TooFew() bool {
	if budget, ok := strings.CutPrefix(s.Stopped, Budget); ok {
		if _, err := time.ParseDuration(budget); err != nil {
			return false
		}
	}
	return s.Stopped != "" && s.Stopped != Sample && s.Stopped != Enough && s.Plans.Run < min(fewest, s.Plans.Total)
}

// mostNotRun is how many kinds of faults are named of which plans were not run.
const mostNotRun = 3

// notRun says of which kinds plans were not run.
func (s *Simulation) notRun() string {
	if len(s.Plans.NotRun) == 0 {
		return ""
	}
	var kinds []string
	for _, n := range s.Plans.NotRun[:min(mostNotRun, len(s.Plans.NotRun))] {
		kinds = append(kinds, fmt.Sprintf("%s (%s of %s)", n.Kind, number(n.Plans), number(n.Total)))
	}
	if more := len(s.Plans.NotRun) - len(kinds); more > 0 {
		kinds = append(kinds, plural(more, "more kind"))
	}
	return "; not run: " + strings.Join(kinds, ", ")
}

// The reasons for which a simulation does not run all plans.
const (
	TimeLimit   = "time limit"
	Interrupted = "interrupted"
	Enough      = "an oracle was violated on which it stops"
	Sample      = "sample"
	Budget      = "budget " // followed by which one
	Slow        = "other work of the machine kept the rest from the processor"
)

// number writes a number with commas.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// columns is how wide sentences are written.
const columns = 100

// wrap writes a sentence in lines, of which all but the first are indented.
func wrap(text string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case width+1+len(word) > columns:
			b.WriteString("\n ")
			width = 1
			fallthrough
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String() + "\n"
}

func shorten(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-3]) + "..."
}
