// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An Explanation is what is known of an object, from both sides. At least one of Object and Report
// is there.
type Explanation struct {
	// Object is the object as the API server has it; nil if it does not exist, or could not be
	// read, and then NoObject says why.
	Object   *unstructured.Unstructured `json:"object,omitempty"`
	NoObject string                     `json:"noObject,omitempty"`
	// Resource is how kubectl calls it, for the commands that are proposed:
	// "rwexternals.demo.ctrlkit.dev".
	Resource string `json:"resource"`
	// Report is what the operator knows; nil if it could not be asked, and then NoReport says why.
	Report   *Report `json:"report,omitempty"`
	NoReport string  `json:"noReport,omitempty"`
	// Now is the time that everything is compared with.
	Now time.Time `json:"now"`
}

// Write writes the explanation as text, for people: without control characters, whatever the object
// or the operator says, and of many or long things those that matter, with a count of the others.
func (x *Explanation) Write(w io.Writer) error {
	p := &page{x: x}
	p.head()
	p.todo()
	for _, c := range p.controllersOf() {
		p.steps(c)
	}
	p.conditions()
	p.finalizers()
	for _, c := range p.controllersOf() {
		p.runs(c)
	}
	if x.Report == nil && x.NoReport != "" {
		p.line("")
		p.line("Steps and causes are not known: %s", short(x.NoReport))
	}
	if p.leftOut || strings.Contains(p.text.String(), moreCharacters) {
		p.line("")
		p.line("Not everything is shown; -o json shows it")
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// Ready says whether the object exists, is ready as its spec is now, and stays. One of a kind of
// Kubernetes that has no conditions, such as a Secret, is ready if no controller of the operator
// that was asked fails or waits for it.
func (x *Explanation) Ready() bool {
	if x.Object == nil || x.Object.GetDeletionTimestamp() != nil {
		return false
	}
	ready := meta.FindStatusCondition(x.objectConditions(), condition.Ready)
	if ready == nil && kindOf(x.Object) == bare {
		return x.Report == nil || !slices.ContainsFunc(x.Report.Controllers, func(c Controller) bool {
			return len(stuck(c.Steps)) > 0 || c.Failure != "" || c.Gated != ""
		})
	}
	return ready != nil && ready.Status == metav1.ConditionTrue && x.current(ready)
}

// current says whether a condition is about the spec as it is now, as far as it says.
func (x *Explanation) current(c *metav1.Condition) bool {
	return c.ObservedGeneration == 0 || c.ObservedGeneration == x.Object.GetGeneration()
}

// objectConditions returns the conditions of the object.
func (x *Explanation) objectConditions() []metav1.Condition {
	if x.Object == nil {
		return nil
	}
	items, _, _ := unstructured.NestedSlice(x.Object.Object, "status", "conditions") //nolint:errcheck // something else has none
	var all []metav1.Condition
	for _, item := range items {
		var c metav1.Condition
		if m, ok := item.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}

// A page is the text of an explanation as it grows.
type page struct {
	x       *Explanation
	text    strings.Builder
	leftOut bool // something, which is counted
}

func (p *page) line(format string, args ...any) {
	p.text.WriteString(cut(oneLine(fmt.Sprintf(format, args...)), mostLine) + "\n")
}

// table writes rows with their columns below one another, each row on one line.
func (p *page) table(rows [][]string) {
	tw := tabwriter.NewWriter(&p.text, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = cut(oneLine(row[i]), 2*mostText)
		}
		fmt.Fprintln(tw, "  "+strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = tw.Flush() // a strings.Builder takes everything
}

func (p *page) age(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return duration.HumanDuration(max(0, p.x.Now.Sub(t)))
}

// lasting says for how long a step is in its state.
func (p *page) lasting(s *Step) string {
	if s.OrLonger {
		return "for at least " + p.age(s.Since)
	}
	return "for " + p.age(s.Since)
}

// in says how long it is until t, which may just have passed.
func (p *page) in(t time.Time) string {
	if d := t.Sub(p.x.Now); d >= time.Second {
		return "in " + duration.HumanDuration(d)
	}
	return "now"
}

func (p *page) controllersOf() []*Controller {
	if p.x.Report == nil {
		return nil
	}
	var all []*Controller
	for i := range p.x.Report.Controllers {
		all = append(all, &p.x.Report.Controllers[i])
	}
	return all
}

// name is what the object is called.
func (p *page) name() string {
	if obj := p.x.Object; obj != nil {
		return obj.GetKind() + " " + slash(obj.GetNamespace(), obj.GetName())
	}
	if r := p.x.Report; r != nil {
		return r.Object.Kind + " " + slash(r.Object.Namespace, r.Object.Name)
	}
	return "The object"
}

func slash(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// head says how it is, and in the words of its condition Ready why.
func (p *page) head() {
	obj := p.x.Object
	switch {
	case obj == nil && p.x.NoObject != "":
		p.line("%s can't be read: %s", p.name(), short(p.x.NoObject))
		return
	case obj == nil:
		p.line("%s does not exist%s", p.name(), p.end())
		return
	}
	ready := meta.FindStatusCondition(p.x.objectConditions(), condition.Ready)
	switch {
	case obj.GetDeletionTimestamp() != nil:
		p.line("%s was deleted %s ago and is still there", p.name(), p.age(obj.GetDeletionTimestamp().Time))
	case ready == nil && kindOf(obj) == bare:
		p.line("%s exists", p.name())
		p.line("  A %s has no conditions: explain %s", obj.GetKind(), p.user())
	case ready == nil:
		p.line("%s has no condition Ready", p.name())
	case !p.x.current(ready):
		p.line("%s has changed: its spec is at generation %d, its condition Ready is about generation %d", p.name(), obj.GetGeneration(), ready.ObservedGeneration)
	case ready.Status == metav1.ConditionTrue:
		p.line("%s has been ready for %s", p.name(), p.age(ready.LastTransitionTime.Time))
	default:
		p.line("%s has not been ready for %s", p.name(), p.age(ready.LastTransitionTime.Time))
	}
	if ready != nil && ready.Status != metav1.ConditionTrue {
		p.line("  %s", reasonOf(*ready))
	}
}

// user says whom to ask instead of an object that says nothing about itself.
func (p *page) user() string {
	owners := p.x.Object.GetOwnerReferences()
	if len(owners) == 0 {
		return "the object whose operator reads or writes it"
	}
	owner := owners[max(0, slices.IndexFunc(owners, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }))]
	group := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	command := "ctrlkit explain " + shellWord(strings.TrimSuffix(strings.ToLower(group.String()), ".")+"/"+owner.Name)
	if ns := p.x.Object.GetNamespace(); ns != "" {
		command += " -n " + shellWord(ns)
	}
	return "its owner, " + command
}

// end says what the operator has seen of an object that does not exist.
func (p *page) end() string {
	for _, c := range p.controllersOf() {
		if c.over() {
			return fmt.Sprintf(" any more, and controller %s has nothing left to do for it", c.Name)
		}
	}
	return ""
}

func reasonOf(c metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return short(c.Reason + ": " + c.Message)
}

func (p *page) conditions() {
	all := p.x.objectConditions()
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line("Conditions")
	ready := meta.FindStatusCondition(all, condition.Ready)
	var rows [][]string
	chosen := choose(all, mostConditions, func(c metav1.Condition) int {
		switch {
		case c.Type == condition.Ready, c.Type == condition.Reconciling, c.Type == condition.Stalled:
			return 0
		case c.Status != metav1.ConditionTrue:
			return 1
		default:
			return 2
		}
	})
	for _, i := range chosen {
		c := all[i]
		text := reasonOf(c)
		if ready != nil && ready.Status != metav1.ConditionTrue && text == reasonOf(*ready) { // the head has said it
			text = "as said above"
		}
		if !p.x.current(&c) {
			text += fmt.Sprintf(" (of generation %d, the spec is at %d)", c.ObservedGeneration, p.x.Object.GetGeneration())
		}
		rows = append(rows, []string{c.Type, string(c.Status), "for " + p.age(c.LastTransitionTime.Time), text})
	}
	p.table(rows)
	if len(chosen) < len(all) {
		p.leftOut = true
		p.line("  %s", others(all, chosen, func(c metav1.Condition) string { return string(c.Status) }))
	}
}

// steps says what became of the steps of a controller.
func (p *page) steps(c *Controller) {
	p.line("")
	p.line("Steps of controller %s%s", c.Name, p.plans(c))
	var rows [][]string
	p.rows(c.Steps, 0, &rows)
	p.table(rows)
	if c.Failure != "" {
		p.line("  %s outside the steps: %s", marks[StateFailed], short(c.Failure))
	}
	if len(c.Steps) == 0 && c.Failure == "" {
		p.line("  none was run lately")
	}
}

// plans says what a controller is about to do.
func (p *page) plans(c *Controller) string {
	switch {
	case !c.Running.IsZero():
		return fmt.Sprintf(" (running for %s)", p.age(c.Running))
	case c.Gated != "":
		return " (left alone)"
	case len(c.Queued) > 0:
		return fmt.Sprintf(" (in the queue: %s)", strings.Join(c.Queued, ", "))
	case c.Next.IsZero():
		return ""
	case c.Failures > 0:
		return fmt.Sprintf(" (failed %s, next try %s)", times(c.Failures), p.in(c.Next))
	case c.HotLoop != nil:
		return fmt.Sprintf(" (slowed down, looks again %s)", p.in(c.Next))
	default:
		return fmt.Sprintf(" (looks again %s)", p.in(c.Next))
	}
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice in a row"
	default:
		return fmt.Sprintf("%d times in a row", n)
	}
}

var marks = map[string]string{
	StateDone: "✓", StateFailed: "✗", StateWaiting: "…", StateRequeued: "↻", StateRunning: "▶", StateNotNeeded: "-", StateNotReached: "·", StateBlocked: "·",
}

func (p *page) rows(steps []Step, depth int, rows *[][]string) {
	chosen := choose(steps, mostSteps, (Step).rank)
	for _, i := range chosen {
		s := steps[i]
		name := strings.Repeat("  ", depth) + s.mark() + " " + s.Name
		if s.Phase == journal.PhaseCleanup {
			name += " (clean-up)"
		}
		text := p.stateOf(&s, steps)
		if s.Again {
			text = "runs again, before: " + text
		}
		*rows = append(*rows, []string{name, text})
		p.rows(s.Actions, depth+1, rows)
	}
	if len(chosen) < len(steps) {
		p.leftOut = true
		*rows = append(*rows, []string{strings.Repeat("  ", depth) + others(steps, chosen, func(s Step) string { return s.State })})
	}
}

// rank says how much a step matters: 0 for those that keep something from being done.
func (s Step) rank() int {
	switch s.State {
	case StateDone, StateNotNeeded:
		return 2
	case StateBlocked, StateNotReached:
		return 1
	default:
		return 0
	}
}

func (s *Step) mark() string {
	if s.Again {
		return marks[StateRunning]
	}
	return cmp.Or(marks[s.State], "?")
}

// stateOf says how a step is, among those beside it.
func (p *page) stateOf(s *Step, beside []Step) string {
	switch s.State {
	case StateFailed:
		if inner := stuck(s.Actions); len(inner) > 0 { // the rows below say it
			return fmt.Sprintf("fails, %s", p.lasting(s))
		}
		return fmt.Sprintf("fails, %s: %s", p.lasting(s), s.fault())
	case StateWaiting:
		if inner := stuck(s.Actions); len(inner) > 0 {
			return fmt.Sprintf("waits, %s", p.lasting(s))
		}
		return fmt.Sprintf("waits, %s: %s", p.lasting(s), s.waitsFor())
	case StateRequeued:
		return "wants to be run again, " + p.lasting(s)
	case StateNotReached:
		if ended := slices.IndexFunc(beside, func(o Step) bool { return len(s.By) == 1 && o.Name == s.By[0] && o.passed() }); ended >= 0 {
			return fmt.Sprintf("not reached: %s has ended the reconcile", s.By[0])
		}
		return fmt.Sprintf("not reached: %s did not pass", strings.Join(s.By, ", "))
	case StateBlocked:
		return "blocked by " + strings.Join(s.By, ", ")
	default:
		return s.State
	}
}

// fault is the error without the name of the step or action, which stands beside it.
func (s *Step) fault() string { return short(strings.TrimPrefix(s.Error, s.Name+": ")) }

func (s *Step) waitsFor() string {
	var texts []string
	for _, w := range s.Waits {
		texts = append(texts, w.For)
	}
	return short(strings.Join(texts, "; "))
}

// stuck returns the steps that failed or wait, and where actions say it, the actions instead.
func stuck(steps []Step) []Step {
	var all []Step
	for _, s := range steps {
		if inner := stuck(s.Actions); len(inner) > 0 && !s.passed() {
			all = append(all, inner...)
		} else if s.State == StateFailed || s.State == StateWaiting {
			all = append(all, s)
		}
	}
	return all
}

func (p *page) finalizers() {
	obj := p.x.Object
	if obj == nil || len(obj.GetFinalizers()) == 0 {
		return
	}
	p.line("")
	p.line("Finalizers")
	var rows [][]string
	finalizers := obj.GetFinalizers()
	chosen := choose(finalizers, mostFinalizers, func(f string) int {
		if p.ours(f) || garbageCollector(f) {
			return 0
		}
		return 1
	})
	for _, i := range chosen {
		f := finalizers[i]
		whose := "of somebody else"
		switch {
		case p.ours(f):
			whose = "of this operator, which takes it off when its clean-up is done"
		case garbageCollector(f):
			whose = "of Kubernetes' garbage collector"
		case p.x.Report == nil:
			whose = ""
		}
		rows = append(rows, []string{f, whose})
	}
	p.table(rows)
	p.more(len(finalizers) - len(chosen))
}

// more says how many things are left out, if any.
func (p *page) more(n int) {
	if n > 0 {
		p.leftOut = true
		p.line("  … and %d more", n)
	}
}

// ours says whether a finalizer is that of a controller in the report.
func (p *page) ours(finalizer string) bool {
	return slices.ContainsFunc(p.controllersOf(), func(c *Controller) bool { return c.Finalizer == finalizer })
}

func garbageCollector(finalizer string) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

// runs says what made a controller look, how that ended and what it wrote.
func (p *page) runs(c *Controller) {
	if len(c.Runs) == 0 {
		return
	}
	p.line("")
	p.line("Last reconciles of controller %s, the latest first", c.Name)
	var rows [][]string
	for i := len(c.Runs) - 1; i >= 0; i-- {
		r, more := c.Runs[i], 0
		for i > 0 && r.like(&c.Runs[i-1]) {
			i, more = i-1, more+1
		}
		result := cmp.Or(results[r.Result], string(r.Result), StateRunning)
		if r.Duration >= time.Second {
			result += " after " + duration.HumanDuration(r.Duration)
		}
		because := ""
		if len(r.Causes) > 0 {
			because = "because: " + strings.Join(r.Causes, ", ")
		}
		if more > 0 {
			because = strings.TrimSpace(fmt.Sprintf("%s (and %d like it before, since %s ago)", because, more, p.age(c.Runs[i].Began)))
		}
		rows = append(rows, []string{p.age(r.Began) + " ago", result, because})
		for _, w := range r.Writes[:min(len(r.Writes), mostWrites)] {
			text := "wrote: " + w.What
			if w.Error != "" {
				text = "refused: " + w.What + ": " + w.Error
			}
			rows = append(rows, []string{"", "", text})
		}
		if n := len(r.Writes) - mostWrites; n > 0 {
			p.leftOut = true
			rows = append(rows, []string{"", "", fmt.Sprintf("… and %d more", n)})
		}
	}
	p.table(rows)
}

// results are those that do not speak for themselves.
var results = map[journal.Result]string{
	journal.ResultConverged: "nothing to do", journal.ResultStale: "cache too old", journal.ResultGone: "it is gone", journal.ResultDeleted: "cleaned up",
}

// like says whether two reconciles differ in nothing but their times.
func (r *Run) like(o *Run) bool {
	return r.Result == o.Result && slices.Equal(r.Causes, o.Causes) && slices.Equal(r.Writes, o.Writes)
}
