// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

// advice is one thing to do, with what belongs to it: a command, or an error in full.
type advice struct{ text, detail string }

// todo says what a person can do, each thing once, and never nothing about an object that is not
// ready.
func (p *page) todo() {
	var all []advice
	most, more := mostAdvice, 0
	add := func(detail, format string, args ...any) {
		a := advice{oneLine(fmt.Sprintf(format, args...)), oneLine(detail)}
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
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line("What to do")
	for _, a := range all {
		p.line("  - %s", a.text)
		if a.detail != "" && !strings.Contains(p.text.String(), a.detail) {
			p.line("      %s", a.detail)
		}
	}
	p.more(more)
}

type adder func(detail, format string, args ...any)

// adviseObject looks at the object alone.
func (p *page) adviseObject(add adder) {
	obj := p.x.Object
	if value, ok := obj.GetAnnotations()[condition.PauseAnnotation]; ok && !strings.EqualFold(value, "false") {
		add(fmt.Sprintf("kubectl annotate %s %s %s-", shellWord(p.x.Resource), p.kubectlName(), condition.PauseAnnotation),
			"It is paused by its annotation %s: nothing is done, also not for its deletion. To go on:", condition.PauseAnnotation)
	}
	if obj.GetDeletionTimestamp() == nil {
		return
	}
	for _, f := range obj.GetFinalizers() {
		switch {
		case p.ours(f): // its steps say why
		case garbageCollector(f):
			add("", "Finalizer %s is of Kubernetes' garbage collector, which waits for the objects that this one owns: look which of them are left.", f)
		case p.x.Report == nil:
			add("", "It is kept by finalizer %s. The controller that put it there takes it off when its clean-up is done: look whether that runs, and ask it.", f)
		default:
			add(fmt.Sprintf("kubectl patch %s %s --type=json -p %s", shellWord(p.x.Resource), p.kubectlName(), shellWord(p.withoutFinalizer(f))),
				"It is kept by finalizer %s, which is not of the operator that was asked. The controller that put it there takes it off when its clean-up is done: "+
					"look whether that runs. Only if it is gone for good, and what it would clean up may stay:", f)
		}
	}
}

func (p *page) kubectlName() string {
	if ns := p.x.Object.GetNamespace(); ns != "" {
		return shellWord(p.x.Object.GetName()) + " -n " + shellWord(ns)
	}
	return shellWord(p.x.Object.GetName())
}

// withoutFinalizer returns a patch that takes one finalizer off and fails if the list has changed.
func (p *page) withoutFinalizer(finalizer string) string {
	i := slices.Index(p.x.Object.GetFinalizers(), finalizer)
	path := fmt.Sprintf("/metadata/finalizers/%d", i)
	return fmt.Sprintf(`[{"op":"test","path":"%s","value":"%s"},{"op":"remove","path":"%s"}]`, path, finalizer, path)
}

// adviseController looks at what a controller knows. What it knew of an object that it is done with
// is over.
func (p *page) adviseController(c *Controller, add adder) {
	if p.x.Object == nil && c.over() || c.Gated != "" {
		return
	}
	for _, s := range stuck(c.Steps) {
		name := s.Name
		if s.Phase == journal.PhaseCleanup {
			name = "The clean-up of " + name
		}
		if s.State == StateFailed {
			add(s.fault(), "%s fails (%s): %s.", name, s.Class, short(s.Remedy))
			continue
		}
		for _, w := range s.Waits {
			when := "at once"
			if w.Every > 0 {
				when = "within " + duration.HumanDuration(w.Every)
			}
			add("", "%s waits for %s. Bring that about, if nobody else does: the operator then goes on by itself, %s.", name, short(w.For), when)
		}
	}
	if c.Failure != "" {
		add(short(c.Failure), "Controller %s fails (%s): %s.", c.Name, c.Class, short(c.Remedy))
	}
	switch hot := c.HotLoop; {
	case hot == nil:
	case len(hot.Managers) > 0:
		add("", "It is slowed down because of a %s. Stop one of those who write, or have them write different fields.", hot.What)
	default:
		add("", "It is slowed down because of a %s. Find out who undoes it; if nobody does, a step of the operator writes another value each time.", hot.What)
	}
}

// adviseConditions says what the conditions ask for, where the operator does not say more.
func (p *page) adviseConditions(add adder) {
	for _, c := range p.x.objectConditions() {
		switch {
		case c.Status != metav1.ConditionTrue:
		case c.Type == condition.Stalled:
			add(reasonOf(c), "It can't go on by itself: change what the message of the condition %s names.", condition.Stalled)
		case c.Type == condition.Reconciling && !slices.ContainsFunc(p.controllersOf(), (*Controller).busy): // else it is said when it looks again
			add(reasonOf(c), "The operator goes on by itself; if it does not, see to what the message of the condition %s names.", condition.Reconciling)
		}
	}
}

// advisePatience says when something will happen, where nothing asks for a person.
func (p *page) advisePatience(add adder) {
	for _, c := range p.controllersOf() {
		switch {
		case !c.Running.IsZero(), len(c.Queued) > 0:
			add("", "Nothing for now: controller %s is at it.", c.Name)
		case c.busy():
			add("", "Nothing for now: controller %s looks again %s.", c.Name, p.in(c.Next))
		default:
			add("", "Look into the operator's log: controller %s neither fails nor waits, and the conditions do not say what is missing.", c.Name)
		}
	}
	switch {
	case kindOf(p.x.Object) != custom:
		add(fmt.Sprintf("kubectl describe %s %s", shellWord(p.x.Resource), p.kubectlName()), "Kubernetes itself looks after it. What that says of it, with its events:")
	case p.x.Report == nil:
		add("", "Look whether its operator runs: the conditions do not say what is missing.")
	}
}
