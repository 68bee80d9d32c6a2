// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// A page is the text of an explanation while it is written.
type page struct {
	x       *Explanation
	text    strings.Builder
	leftOut bool // whether something is only counted
}

func (p *page) line(format string, args ...any) {
	p.text.WriteString(printable.Cut(oneLine(fmt.Sprintf(format, args...)), mostLine) + "\n")
}

// table writes rows with aligned columns, each row on one line.
func (p *page) table(rows [][]string) {
	tw := tabwriter.NewWriter(&p.text, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = printable.Cut(oneLine(row[i]), 2*mostText)
		}
		fmt.Fprintln(tw, "  "+strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = tw.Flush() // a strings.Builder returns no errors
}

func (p *page) age(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	age := p.x.Now.Sub(t)
	if age < time.Second {
		return "<1s"
	}
	return duration.HumanDuration(age)
}

// lasting returns for how long a step has been in its state.
func (p *page) lasting(s *Step) string {
	if s.OrLonger && p.x.Now.Sub(s.Since) >= time.Second {
		return "for at least " + p.age(s.Since)
	}
	return "for " + p.age(s.Since)
}

// in returns how long it is until t, which may just have passed.
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

// name returns kind, namespace and name of the object.
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

// asked writes which shard has answered, and whether it is the one that has the object.
func (p *page) asked() {
	if p.x.Asked == nil {
		return
	}
	var labels map[string]string // nil if they are not known
	if obj := p.x.Object; obj != nil {
		if labels = obj.GetLabels(); labels == nil {
			labels = map[string]string{}
		}
	}
	for _, line := range p.x.Asked.lines(labels) {
		p.line("  %s", short(line))
	}
}

// head writes the state of the object and, from its condition Ready, the reason.
func (p *page) head() {
	obj := p.x.Object
	defer func() {
		p.asked()
		if obj != nil && len(p.x.OtherResources) > 0 {
			p.line("  %s", p.x.Ambiguity(shellWord(obj.GetName())))
		}
	}()
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
		p.line("%s has changed: its spec is at generation %d, its condition Ready is about generation %d",
			p.name(), obj.GetGeneration(), ready.ObservedGeneration)
	case ready.Status == metav1.ConditionTrue:
		p.line("%s has been ready for %s", p.name(), p.age(ready.LastTransitionTime.Time))
	default:
		p.line("%s has not been ready for %s", p.name(), p.age(ready.LastTransitionTime.Time))
	}
	if ready != nil && ready.Status != metav1.ConditionTrue {
		p.line("  %s", reasonOf(*ready))
	}
}

// user names the object to explain instead of one that has no conditions.
func (p *page) user() string {
	if command := p.explainOwner(); command != "" {
		return "its owner, " + command
	}
	return "the object whose operator reads or writes it"
}

// setOwner is the annotation by which a set names the owner of an object that has no owner
// reference: "Website.web.ctrlkit.dev default/shop". It is apply.OwnerAnnotation.
const setOwner = "apply.ctrlkit.dev/owner"

// explainOwner returns the command that explains the owner of the object, empty if it has none.
func (p *page) explainOwner() string {
	var kind, name, namespace string
	owners := p.x.Object.GetOwnerReferences()
	if annotated := p.x.Object.GetAnnotations()[setOwner]; len(owners) > 0 {
		owner := owners[max(0, slices.IndexFunc(owners, func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }))]
		kind, name = schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind().String(), owner.Name
		namespace = p.x.Object.GetNamespace()
	} else if annotated != "" {
		kind, name, _ = strings.Cut(annotated, " ")
		if in, rest, ok := strings.Cut(name, "/"); ok {
			namespace, name = in, rest
		}
	}
	if name == "" {
		return ""
	}
	command := "ctrlkit explain " + shellWord(strings.TrimSuffix(strings.ToLower(kind), ".")+"/"+name)
	if namespace != "" {
		command += " -n " + shellWord(namespace)
	}
	return command
}

// end returns what the operator knows about an object that does not exist.
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
		if ready != nil && ready.Status != metav1.ConditionTrue && text == reasonOf(*ready) { // it is in the head
			text = "as above"
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
		whose := "of another controller"
		switch {
		case p.ours(f):
			whose = "of this operator, which removes it when its cleanup is done"
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

// more writes how many things are left out, if any.
func (p *page) more(n int) {
	if n > 0 {
		p.leftOut = true
		p.line("  … and %d more", n)
	}
}

// ours reports whether a finalizer is that of a controller in the report.
func (p *page) ours(finalizer string) bool {
	return slices.ContainsFunc(p.controllersOf(), func(c *Controller) bool { return c.Finalizer == finalizer })
}

func garbageCollector(finalizer string) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}
