// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

// When returns a step whose steps are only done for objects that cond is true for. Description says
// when that is, for [journal.StepSkipped].
//
// Their Cleanup is called for all objects, as cond may have been true once, and so is their Post.
// The finalizer is put on an object when cond is first true. A condition of theirs is good, with
// reason [ReasonNotNeeded], as long as cond is false.
func When[T client.Object](description string, cond func(req *Request[T]) bool, steps ...Step[T]) Step[T] {
	return &composite[T]{name: description, cond: cond, steps: steps}
}

// Group returns a step whose steps do not depend on each other: all are done, at the same time,
// also when one of them fails or waits. Their outcomes are joined in the order given. The steps
// after the group are reached when all have passed. So it is with their Cleanup; their Post comes
// one after the other.
//
// The steps share the request. Conditions, [Put] and the clients are safe for that. Of the object,
// each step writes fields of its own, and reads none that another one writes: two may set two
// fields of the status, but not two annotations, which are one map. [GroupOrdered] is for steps
// that can't keep to that. At most 16 steps of an object run at the same time, and they begin in
// the order given.
func Group[T client.Object](name string, steps ...Step[T]) Step[T] {
	return &composite[T]{name: name, way: atOnce, steps: steps}
}

// GroupOrdered is [Group] one step after the other, in the order given, and with Cleanup in reverse
// order.
func GroupOrdered[T client.Object](name string, steps ...Step[T]) Step[T] {
	return &composite[T]{name: name, way: eachInTurn, steps: steps}
}

// A way is how the steps of a composite are run.
type way int

const (
	untilOneStops way = iota // in order, until one does not pass
	eachInTurn               // in order, all of them
	atOnce                   // all of them, at the same time
)

// A composite is made of other steps. The engine takes it apart and never calls its methods.
type composite[T client.Object] struct {
	name  string
	cond  func(req *Request[T]) bool
	way   way
	steps []Step[T]
}

func (c *composite[T]) Name() string { return c.name }

// Do is there because a composite is a Step; see above.
func (c *composite[T]) Do(context.Context, *Request[T]) (ctrl.Result, error) {
	panic("step: " + c.name + " is made of other steps and can only be given to New, When, Group and GroupOrdered")
}

// Workflow returns a step that runs a workflow of package ctrlkit, built anew for each reconcile. A
// generated manager plugs in like this:
//
//	step.Workflow("Run", func(req *step.Request[*v1.CronJob]) ctrlkit.Action {
//		mgr := manager.NewCronJobControllerManager(manager.NewCronJobControllerManagerState(req.Client, req.Object), newImpl(req), req.Logger)
//		return ctrlkit.Join(mgr.CleanUpOldJobs(), mgr.RunNextScheduledJob())
//	})
func Workflow[T client.Object](name string, build func(req *Request[T]) ctrlkit.Action) Step[T] {
	return &workflow[T]{name: name, do: build}
}

// WorkflowWithCleanup is [Workflow] for what has something to clean up.
func WorkflowWithCleanup[T client.Object](name string, do, cleanup func(req *Request[T]) ctrlkit.Action) Cleaner[T] {
	return &cleanedWorkflow[T]{workflow[T]{name, do}, cleanup}
}

type workflow[T client.Object] struct {
	name string
	do   func(req *Request[T]) ctrlkit.Action
}

func (w *workflow[T]) Name() string { return w.name }
func (w *workflow[T]) Do(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
	return RunWorkflow(ctx, req, w.do)
}

type cleanedWorkflow[T client.Object] struct {
	workflow[T]
	cleanup func(req *Request[T]) ctrlkit.Action
}

func (w *cleanedWorkflow[T]) Cleanup(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
	return RunWorkflow(ctx, req, w.cleanup)
}

// RunWorkflow builds a workflow and runs it, for a step of a type of your own. The journal is told
// of its actions.
func RunWorkflow[T client.Object](ctx context.Context, req *Request[T], build func(req *Request[T]) ctrlkit.Action) (ctrl.Result, error) {
	if req.core != nil && req.core.run != nil {
		ctx = ctrlkit.ContextWithHook(ctx, &actionEvents{run: req.core.run, step: stepFrom(ctx), table: req.core.table})
	}
	return build(req).Run(ctx)
}

// ReasonNotNeeded is the reason of conditions of steps whose [When] does not hold.
const ReasonNotNeeded = "NotNeeded"

// A part is a step with its abilities, found once.
type part[T client.Object] struct {
	step     Step[T]
	index    int
	cond     []func(*Request[T]) bool // of all When around it
	cleaner  Cleaner[T]
	poster   PostStep[T]
	declared []condition.Declaration
	grouped  bool // it runs at the same time as others
	// afterDo and afterCleanup are the parts that begin before this one in a group, nil if none
	// does.
	afterDo, afterCleanup *part[T]
}

// wanted says whether all conditions around the step hold.
func (p *part[T]) wanted(req *Request[T]) bool {
	for _, c := range p.cond {
		if !c(req) {
			return false
		}
	}
	return true
}

// A plan is the steps of an engine as actions, built once. The actions find the request in their
// context.
type plan[T client.Object] struct {
	parts             []*part[T]
	do, cleanup, post ctrlkit.Action
	declared          []condition.Declaration
	cleans            bool
	groups            bool // some parts run at the same time
}

func newPlan[T client.Object](steps []Step[T]) *plan[T] {
	p := &plan[T]{}
	all := p.arrange(&composite[T]{steps: steps}, nil, false)
	p.do, p.cleanup = orNothing(all.do), orNothing(all.cleanup)
	var posts []ctrlkit.Action
	for _, part := range p.parts {
		p.declared = append(p.declared, part.declared...)
		if part.poster != nil {
			posts = append(posts, act(part, journal.PhasePost, func(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
				return ctrl.Result{}, part.poster.Post(ctx, req)
			}))
		}
		p.cleans = p.cleans || part.cleaner != nil
	}
	if len(posts) > 0 {
		p.post = ctrlkit.JoinOrdered(posts...)
	}
	return p
}

func orNothing(a ctrlkit.Action) ctrlkit.Action {
	if a == nil {
		return ctrlkit.Sequential()
	}
	return a
}

// An arrangement is the Do of a composite, and its Cleanup, in reverse order, with the part that
// begins first in each of them: nil if there is none.
type arrangement[T client.Object] struct {
	do, cleanup           ctrlkit.Action
	firstDo, firstCleanup *part[T]
}

// arrange takes a composite apart. Cond are the conditions around it; grouped says that it runs at
// the same time as others.
func (p *plan[T]) arrange(c *composite[T], cond []func(*Request[T]) bool, grouped bool) arrangement[T] {
	if c.cond != nil {
		cond = append(cond[:len(cond):len(cond)], c.cond)
	}
	if c.way == atOnce && len(c.steps) > 1 {
		grouped, p.groups = true, true
	}
	all := make([]arrangement[T], 0, len(c.steps))
	for _, s := range c.steps {
		if inner, ok := s.(*composite[T]); ok {
			all = append(all, p.arrange(inner, cond, grouped))
			continue
		}
		all = append(all, p.leaf(s, cond, grouped))
	}
	return join(c.way, all)
}

// leaf returns the arrangement of a step that is not made of others.
func (p *plan[T]) leaf(s Step[T], cond []func(*Request[T]) bool, grouped bool) arrangement[T] {
	part := &part[T]{step: s, index: len(p.parts), cond: cond, grouped: grouped}
	p.parts = append(p.parts, part)
	part.poster, _ = s.(PostStep[T])
	if manager, ok := s.(ConditionDeclarer[T]); ok {
		part.declared = manager.Conditions()
	}
	a := arrangement[T]{do: act(part, journal.PhaseDo, s.Do), firstDo: part}
	if part.cleaner, _ = s.(Cleaner[T]); part.cleaner != nil {
		a.cleanup, a.firstCleanup = act(part, journal.PhaseCleanup, part.cleaner.Cleanup), part
	}
	return a
}

// join makes one arrangement of several.
func join[T client.Object](w way, all []arrangement[T]) arrangement[T] {
	var dos, cleanups []ctrlkit.Action
	var joined arrangement[T]
	var last *part[T]
	for _, a := range all {
		if a.do == nil {
			continue
		}
		dos = append(dos, a.do)
		if joined.firstDo == nil {
			joined.firstDo = a.firstDo
		} else if w == atOnce {
			a.firstDo.afterDo = last
		}
		last = a.firstDo
	}
	for _, a := range slices.Backward(all) {
		if a.cleanup == nil {
			continue
		}
		cleanups = append(cleanups, a.cleanup)
		if joined.firstCleanup == nil {
			joined.firstCleanup = a.firstCleanup
		} else if w == atOnce {
			a.firstCleanup.afterCleanup = last
		}
		last = a.firstCleanup
	}
	run := ctrlkit.Sequential
	switch w {
	case eachInTurn:
		run = ctrlkit.JoinOrdered
	case atOnce:
		run = ctrlkit.ParallelJoin
	}
	if len(dos) > 0 {
		joined.do = run(dos...)
	}
	if len(cleanups) > 0 {
		joined.cleanup = run(cleanups...)
	}
	return joined
}

// act returns a phase of a step as an action that finds its request in the context.
func act[T client.Object](p *part[T], phase journal.Phase, call func(context.Context, *Request[T]) (ctrl.Result, error)) ctrlkit.Action {
	return ctrlkit.NewAction(p.step.Name(), func(ctx context.Context) (ctrl.Result, error) {
		req := requestFrom[T](ctx)
		if p.grouped && phase != journal.PhasePost {
			defer req.gate.begin(p.index) // also if it never comes to that
			leave, err := req.gate.enter(ctx, p.after(phase))
			if err != nil {
				return ctrl.Result{}, fmt.Errorf("it was not begun: %w", err)
			}
			defer leave()
			ctx = context.WithValue(ctx, placeKey{}, &place{gate: req.gate})
		}
		if phase == journal.PhaseDo && !p.wanted(req) {
			req.skip(ctx, p)
			return ctrlkit.NoRequeue()
		}
		if phase == journal.PhaseDo && p.cleaner != nil { // its condition may hold only since a step before it
			if err := req.guard(ctx, p); err != nil {
				return ctrl.Result{}, err
			}
		}
		return req.observe(ctx, p, phase, call)
	})
}

// after returns the index of the part that begins before this one, -1 if none does.
func (p *part[T]) after(phase journal.Phase) int {
	before := p.afterDo
	if phase == journal.PhaseCleanup {
		before = p.afterCleanup
	}
	if before == nil {
		return -1
	}
	return before.index
}
