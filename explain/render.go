package explain

import (
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
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// An Explanation is what is known of an object, from both sides.
type Explanation struct {
	// Object is the object as the API server has it; nil if it does not exist.
	Object *unstructured.Unstructured `json:"object,omitempty"`
	// Resource is how kubectl calls it, for the commands that are proposed: "rwexternals.demo.ctrlkit.dev".
	Resource string `json:"resource"`
	// Report is what the operator knows; nil if it could not be asked, and then NoReport says why.
	Report   *Report `json:"report,omitempty"`
	NoReport string  `json:"noReport,omitempty"`
	// Now is the time that everything is compared with.
	Now time.Time `json:"now"`
}

// Write writes the explanation as text, for people.
func (x *Explanation) Write(w io.Writer) error {
	p := &page{x: x}
	p.head()
	p.advice()
	p.conditions()
	p.controllers()
	p.finalizers()
	if x.Report == nil && x.NoReport != "" {
		p.line("")
		p.line("Steps and causes are not known: %s", x.NoReport)
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// Ready says whether the object exists, is ready, and stays.
func (x *Explanation) Ready() bool {
	return x.Object != nil && x.Object.GetDeletionTimestamp() == nil && meta.IsStatusConditionTrue(x.objectConditions(), condition.Ready)
}

type page struct {
	x    *Explanation
	text strings.Builder
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// table writes rows with their columns below one another.
func (p *page) table(rows [][]string) {
	tw := tabwriter.NewWriter(&p.text, 0, 0, 3, ' ', 0)
	for _, row := range rows {
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

// head says in one line how it is.
func (p *page) head() {
	obj := p.x.Object
	if obj == nil {
		p.line("%s %s does not exist", p.x.Report.Object.Kind, slash(p.x.Report.Object.Namespace, p.x.Report.Object.Name))
		return
	}
	name := obj.GetKind() + " " + slash(obj.GetNamespace(), obj.GetName())
	switch ready := meta.FindStatusCondition(p.x.objectConditions(), condition.Ready); {
	case obj.GetDeletionTimestamp() != nil:
		p.line("%s is being deleted, for %s", name, p.age(obj.GetDeletionTimestamp().Time))
	case ready == nil:
		p.line("%s has no condition Ready", name)
	case ready.Status == metav1.ConditionTrue:
		p.line("%s is ready, for %s", name, p.age(ready.LastTransitionTime.Time))
	default:
		p.line("%s is not ready, for %s: %s", name, p.age(ready.LastTransitionTime.Time), ready.Reason)
	}
}

func slash(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
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

// advice says what to do, each thing once.
func (p *page) advice() {
	var all []string
	add := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if p.x.Object != nil {
		p.adviseObject(add)
	}
	if p.x.Report != nil {
		for i := range p.x.Report.Controllers {
			p.adviseController(&p.x.Report.Controllers[i], add)
		}
	}
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line("What to do")
	for _, text := range all {
		p.line("  - %s", strings.ReplaceAll(text, "\n", "\n    "))
	}
}

// adviseObject looks at the object alone.
func (p *page) adviseObject(add func(string, ...any)) {
	obj := p.x.Object
	if value, ok := obj.GetAnnotations()[step.PauseAnnotation]; ok && !strings.EqualFold(value, "false") {
		add("It is paused by an annotation. To go on:\nkubectl annotate %s %s %s-", p.x.Resource, p.kubectlName(), step.PauseAnnotation)
	}
	if obj.GetDeletionTimestamp() != nil {
		for _, f := range obj.GetFinalizers() {
			if !p.ours(f) {
				add("Finalizer %q is not of the operator that was asked: whoever put it there has to take it off. Look whether that controller runs."+
					" Only if it is gone for good, and what it would have cleaned up is not needed:\nkubectl patch %s %s --type=json -p '%s'",
					f, p.x.Resource, p.kubectlName(), p.withoutFinalizer(f))
			}
		}
	}
	if p.x.Report == nil {
		p.adviseConditions(add)
	}
}

// adviseConditions says what the conditions ask for, where the operator can't be asked.
func (p *page) adviseConditions(add func(string, ...any)) {
	for _, c := range p.x.objectConditions() {
		switch {
		case c.Type == condition.Stalled && c.Status == metav1.ConditionTrue:
			add("It can't go on by itself: %s", c.Message)
		case c.Type == condition.Reconciling && c.Status == metav1.ConditionTrue:
			add("It goes on by itself when this has passed: %s", c.Message)
		}
	}
}

func (p *page) kubectlName() string {
	if ns := p.x.Object.GetNamespace(); ns != "" {
		return p.x.Object.GetName() + " -n " + ns
	}
	return p.x.Object.GetName()
}

// withoutFinalizer returns a patch that takes one finalizer off and fails if the list has changed.
func (p *page) withoutFinalizer(finalizer string) string {
	i := slices.Index(p.x.Object.GetFinalizers(), finalizer)
	path := fmt.Sprintf("/metadata/finalizers/%d", i)
	return fmt.Sprintf(`[{"op":"test","path":"%s","value":"%s"},{"op":"remove","path":"%s"}]`, path, finalizer, path)
}

// ours says whether a finalizer is that of a controller in the report.
func (p *page) ours(finalizer string) bool {
	if p.x.Report == nil {
		return false
	}
	return slices.ContainsFunc(p.x.Report.Controllers, func(c Controller) bool { return c.Finalizer == finalizer })
}

// adviseController looks at what a controller knows.
func (p *page) adviseController(c *Controller, add func(string, ...any)) {
	for _, s := range leaves(c.Steps) {
		switch s.State {
		case StateFailed:
			add("%s failed, %s: %s", s.Name, s.Class, wayOut(s.Class))
		case StateWaiting:
			for _, w := range s.Waits {
				if w.Every > 0 {
					add("%s waits for %s. It looks every %s by itself.", s.Name, w.For, duration.HumanDuration(w.Every))
					continue
				}
				add("%s waits for %s. It goes on by itself as soon as that is there.", s.Name, w.For)
			}
		}
	}
	if c.Failure != "" {
		add("%s failed, %s: %s", c.Name, c.Class, wayOut(c.Class))
	}
	if c.HotLoop != "" {
		add("It is in a %s. Find who else writes there, and stop one of the two.", c.HotLoop)
	}
}

// leaves returns the steps that failed or wait, and where actions say it, the actions instead.
func leaves(steps []Step) []Step {
	var all []Step
	for _, s := range steps {
		if inner := leaves(s.Actions); len(inner) > 0 {
			all = append(all, inner...)
		} else if s.State == StateFailed || s.State == StateWaiting {
			all = append(all, s)
		}
	}
	return all
}

func (p *page) conditions() {
	all := p.x.objectConditions()
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line("Conditions")
	var rows [][]string
	for _, c := range all {
		text := c.Reason
		if c.Message != "" {
			text += ": " + c.Message
		}
		if c.ObservedGeneration != 0 && c.ObservedGeneration != p.x.Object.GetGeneration() {
			text += fmt.Sprintf(" (of generation %d, the spec is at %d)", c.ObservedGeneration, p.x.Object.GetGeneration())
		}
		rows = append(rows, []string{c.Type, string(c.Status), p.age(c.LastTransitionTime.Time), text})
	}
	p.table(rows)
}

func (p *page) controllers() {
	if p.x.Report == nil {
		return
	}
	for i := range p.x.Report.Controllers {
		p.controller(&p.x.Report.Controllers[i])
	}
}

func (p *page) controller(c *Controller) {
	p.line("")
	p.line("Steps of controller %s%s", c.Name, p.nextOf(c))
	if len(c.Steps) == 0 {
		p.line("  none was run lately")
	}
	var rows [][]string
	p.steps(c.Steps, 0, &rows)
	p.table(rows)
	if c.Failure != "" {
		p.line("  failed: %s", c.Failure)
	}
	if len(c.Runs) == 0 {
		return
	}
	p.line("")
	p.line("Last reconciles of controller %s", c.Name)
	rows = nil
	for _, r := range slices.Backward(c.Runs) {
		because := "because of " + strings.Join(r.Causes, ", ")
		if len(r.Causes) == 0 {
			because = ""
		}
		rows = append(rows, []string{p.age(r.Began) + " ago", string(r.Result), because})
		for _, w := range r.Writes {
			rows = append(rows, []string{"", "wrote", w})
		}
	}
	p.table(rows)
}

// nextOf says when a controller looks again.
func (p *page) nextOf(c *Controller) string {
	switch {
	case len(c.Queued) > 0:
		return fmt.Sprintf(" (in the queue, because of %s)", strings.Join(c.Queued, ", "))
	case !c.Running.IsZero():
		return fmt.Sprintf(" (running for %s)", p.age(c.Running))
	case c.Next.IsZero():
		return ""
	case c.Failures > 0:
		return fmt.Sprintf(" (failed %s in a row, next try %s)", times(c.Failures), p.in(c.Next))
	default:
		return fmt.Sprintf(" (looks again %s)", p.in(c.Next))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (p *page) in(t time.Time) string {
	if d := t.Sub(p.x.Now); d > 0 {
		return "in " + duration.HumanDuration(d)
	}
	return "now"
}

var marks = map[string]string{
	StateDone: "✓", StateFailed: "✗", StateWaiting: "…", StateRequeued: "↻", StateRunning: "▶", StateNotNeeded: "-", StateNotReached: "·", StateBlocked: "·",
}

func (p *page) steps(steps []Step, depth int, rows *[][]string) {
	for _, s := range steps {
		name := strings.Repeat("  ", depth) + marks[s.State] + " " + s.Name
		if s.Phase == journal.Cleanup {
			name += " (clean-up)"
		}
		*rows = append(*rows, []string{name, p.stateOf(&s)})
		p.steps(s.Actions, depth+1, rows)
	}
}

func (p *page) stateOf(s *Step) string {
	switch s.State {
	case StateFailed:
		return fmt.Sprintf("failed, for %s: %s", p.age(s.Since), s.Error)
	case StateWaiting:
		var texts []string
		for _, w := range s.Waits {
			texts = append(texts, w.For)
		}
		return fmt.Sprintf("waits, for %s: %s", p.age(s.Since), strings.Join(texts, "; "))
	case StateNotReached:
		return "not reached: " + strings.Join(s.By, ", ") + " did not pass"
	case StateBlocked:
		return "blocked by " + strings.Join(s.By, ", ")
	default:
		return s.State
	}
}

func (p *page) finalizers() {
	obj := p.x.Object
	if obj == nil || len(obj.GetFinalizers()) == 0 {
		return
	}
	p.line("")
	p.line("Finalizers")
	var rows [][]string
	for _, f := range obj.GetFinalizers() {
		whose := "of somebody else"
		switch {
		case p.ours(f):
			whose = "of this operator, taken off when its clean-up is done"
		case p.x.Report == nil:
			whose = ""
		}
		rows = append(rows, []string{f, whose})
	}
	p.table(rows)
}
