// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An Advice is one thing to do: with the error in full that it is about, and a command, if there are.
type Advice struct{ Text, Error, Command string }

// todo writes what a person can do, each thing once. About an object that is not ready it always
// writes something.
func (p *page) todo() {
	all, more := p.advise()
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line("What to do")
	for _, a := range all {
		p.line("  - %s", a.Text)
		for _, detail := range []string{a.Error, a.Command} {
			if detail != "" && !strings.Contains(p.text.String(), detail) {
				p.line("      %s", detail)
			}
		}
	}
	p.more(more)
}

// advise returns what to do, and how much more there is of it.
func (p *page) advise() (all []Advice, more int) {
	most := mostAdvice
	add := func(a Advice, format string, args ...any) {
		a = Advice{oneLine(fmt.Sprintf(format, args...)), oneLine(a.Error), oneLine(a.Command)}
		switch {
		case slices.Contains(all, a):
		case len(all) < most:
			all = append(all, a)
		default:
			more++
		}
	}
	if p.x.Object != nil {
		p.adviseObject(add)
	}
	for _, c := range p.controllersOf() {
		most = len(all) + mostAdvice
		p.adviseController(c, add)
	}
	if len(all) == 0 {
		p.adviseConditions(add)
	}
	if len(all) == 0 && p.x.Object != nil && !p.x.Ready() {
		p.advisePatience(add)
	}
	return all, more
}

// An adder adds an advice with a text.
type adder func(a Advice, format string, args ...any)

// adviseObject advises on what the object alone says.
func (p *page) adviseObject(add adder) {
	obj := p.x.Object
	value, paused := obj.GetAnnotations()[condition.PauseAnnotation]
	if paused && !strings.EqualFold(value, "false") {
		add(Advice{Command: fmt.Sprintf("kubectl annotate %s %s %s-", shellWord(p.x.Resource), p.kubectlName(), condition.PauseAnnotation)},
			"It is paused by annotation %s: the operator leaves it alone, also when it is deleted. To resume:",
			condition.PauseAnnotation)
	}
	if obj.GetDeletionTimestamp() == nil {
		return
	}
	for _, f := range obj.GetFinalizers() {
		switch {
		case p.ours(f): // its steps say why
		case garbageCollector(f):
			add(Advice{}, "Finalizer %s belongs to Kubernetes' garbage collector, which waits until the objects that "+
				"this one owns are deleted: check which of them remain.", f)
		case p.x.Report == nil:
			add(Advice{}, "It is kept by finalizer %s. The controller that added it removes it when its cleanup is done: "+
				"check that it runs, and ask it with --endpoint.", f)
		default:
			add(Advice{Command: fmt.Sprintf("kubectl patch %s %s --type=json -p %s",
				shellWord(p.x.Resource), p.kubectlName(), shellWord(p.withoutFinalizer(f)))},
				"It is kept by finalizer %s, which does not belong to the operator that was asked. The controller "+
					"that added it removes it when its cleanup is done: check that it runs. "+
					"Only if it is gone for good, and what it would clean up may remain:", f)
		}
	}
}

func (p *page) kubectlName() string {
	if ns := p.x.Object.GetNamespace(); ns != "" {
		return shellWord(p.x.Object.GetName()) + " -n " + shellWord(ns)
	}
	return shellWord(p.x.Object.GetName())
}

// withoutFinalizer returns a patch that removes one finalizer, and fails if the list has changed.
func (p *page) withoutFinalizer(finalizer string) string {
	i := slices.Index(p.x.Object.GetFinalizers(), finalizer)
	path := fmt.Sprintf("/metadata/finalizers/%d", i)
	return fmt.Sprintf(`[{"op":"test","path":"%s","value":"%s"},{"op":"remove","path":"%s"}]`, path, finalizer, path)
}

// adviseController advises on what a controller knows, unless the controller is done with an object
// that does not exist any more.
func (p *page) adviseController(c *Controller, add adder) {
	if p.x.Object == nil && c.over() || c.Gated != "" {
		return
	}
	for _, s := range c.Steps {
		if s.Late != "" {
			add(Advice{}, "%s. A call that does not return is the usual cause, and the worker does nothing else: "+
				"look at what the step calls; the stacks of the operator's goroutines show where it is.", short(s.Late))
		}
	}
	for _, s := range stuck(c.Steps) {
		name := s.Name
		if s.Phase == journal.PhaseCleanup {
			name = "The cleanup of " + name
		}
		if s.State == StateFailed {
			add(Advice{Error: s.fault(), Command: p.x.Report.commandOf(&s)}, "%s fails (%s): %s.", name, s.Class, short(s.Remedy))
			continue
		}
		if s.State == StateStalled {
			add(Advice{}, "%s can't continue before a person changes something: %s", name, short(s.Stalled))
		}
		if s.State == StateNotReady {
			lacks := strings.TrimSuffix(s.Name+" is not ready: "+short(s.Lacks), ": ")
			add(Advice{Command: p.x.Report.kubectl("describe", s.Name)}, "%s. The operator continues by itself when it is. Its state, with its events:", lacks)
		}
		for _, w := range s.Waits {
			c.adviseWait(name, w, add)
		}
	}
	if c.Failure != "" {
		add(Advice{Error: short(c.Failure)}, "Controller %s fails (%s): %s.", c.Name, c.Class, short(c.Remedy))
	}
	switch hot := c.HotLoop; {
	case hot == nil:
	case len(hot.Managers) > 0:
		add(Advice{}, "It is slowed down because of a %s. Stop one of the writers, or make them write different fields.", hot.What)
	default:
		add(Advice{}, "It is slowed down because of a %s. Find out what reverts the write; if nothing does, "+
			"a step of the operator writes another value each time.", hot.What)
	}
}

// annotating matches what a remedy says of an annotation, running a command that it has.
var (
	annotating = regexp.MustCompile(`\b(?:annotation|annotate it with) ([-a-z0-9./]+): ([-a-z]+)`)
	running    = regexp.MustCompile(`\bkubectl [^:;,]+`)
)

// commandOf returns the command that a remedy names, or that does what it says to the object of a set
// that has failed; empty if there is none.
func (r *Report) commandOf(s *Step) string {
	if command := running.FindString(s.Remedy); command != "" {
		return command
	}
	found := annotating.FindStringSubmatch(s.Remedy)
	if found == nil || !objectName.MatchString(s.Name) {
		return ""
	}
	return r.kubectl("annotate", s.Name) + " " + found[1] + "=" + found[2]
}

// kubectl returns the command that does something to an object of a set: "Deployment web".
func (r *Report) kubectl(verb, name string) string {
	kind, name, _ := strings.Cut(name, " ")
	namespace, rest, elsewhere := strings.Cut(name, "/")
	if !elsewhere {
		namespace, rest = r.Object.Namespace, name
	}
	command := "kubectl " + verb + " " + shellWord(strings.ToLower(kind)) + " " + shellWord(rest)
	if namespace != "" {
		command += " -n " + shellWord(namespace)
	}
	return command
}

// objectName matches the name of an object: "Secret shop/db-password".
var objectName = regexp.MustCompile(`^[A-Z][A-Za-z]* \S+$`)

func (c *Controller) adviseWait(name string, w journal.Wait, add adder) {
	remedy := "Check what delays it"
	if objectName.MatchString(w.For) {
		remedy = "Create it unless another controller does"
	}
	if i := slices.IndexFunc(c.Unwatched, func(u Unwatched) bool { return u.isIn(w.For) }); i >= 0 && w.Every == 0 {
		add(Advice{}, "%s waits for %s, which nothing watches: the operator does not notice when it comes, a mistake of its authors. "+
			"%s, and then change this object, for example an annotation, so that it is reconciled.", name, short(w.For), remedy)
		return
	}
	within := ""
	if w.Every > 0 {
		within = " within " + duration.HumanDuration(w.Every)
	}
	add(Advice{}, "%s waits for %s. %s; the operator continues by itself%s.", name, short(w.For), remedy, within)
}

// adviseConditions advises on what the conditions say, if the operator does not say more.
func (p *page) adviseConditions(add adder) {
	for _, c := range p.x.objectConditions() {
		switch {
		case c.Status != metav1.ConditionTrue:
		case c.Type == condition.Stalled:
			add(Advice{}, "The operator can't continue before a person changes something: %s", reasonOf(c))
		case c.Type == condition.Reconciling && !slices.ContainsFunc(p.controllersOf(), (*Controller).busy):
			// Otherwise advisePatience says when the operator reconciles next.
			add(Advice{}, "The operator continues by itself; if it does not, check this: %s", reasonOf(c))
		}
	}
}

// advisePatience says when something will happen, if no person has to act.
func (p *page) advisePatience(add adder) {
	for _, c := range p.controllersOf() {
		switch {
		case !c.Running.IsZero():
			add(Advice{}, "Nothing yet: controller %s is reconciling it now.", c.Name)
		case len(c.Queued) > 0:
			add(Advice{}, "Nothing yet: controller %s is about to reconcile it.", c.Name)
		case c.busy():
			add(Advice{}, "Nothing yet: controller %s reconciles it again %s.", c.Name, p.in(c.Next))
		default:
			add(Advice{}, "Check the operator's log: controller %s neither fails nor waits, and %s.", c.Name, p.x.lacking())
		}
	}
	switch {
	case kindOf(p.x.Object) != custom:
		add(Advice{Command: fmt.Sprintf("kubectl describe %s %s", shellWord(p.x.Resource), p.kubectlName())},
			"Kubernetes itself manages it. Its state, with its events:")
		if command := p.explainOwner(); command != "" {
			add(Advice{Command: command}, "Its owner may say more:")
		}
	case p.x.Report == nil:
		add(Advice{}, "Check that its operator runs: %s.", p.x.lacking())
	}
}

// lacking says whether the object says what is missing: in a condition Ready with a message.
func (x *Explanation) lacking() string {
	ready := meta.FindStatusCondition(x.objectConditions(), condition.Ready)
	if ready != nil && ready.Status != metav1.ConditionTrue && ready.Message != "" && x.current(ready) {
		return "its condition Ready says what is missing, unless that is there by now"
	}
	return "the conditions do not say what is missing"
}
