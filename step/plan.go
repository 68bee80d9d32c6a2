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

// A part is a step that is not made of others, with its place in the plan.
type part[T client.Object] struct {
	Step[T]
	index   int
	cond    []func(*Request[T]) bool // of all When around it
	grouped bool                     // it runs at the same time as others
	// afterDo and afterCleanup are the parts that begin before this one in a group, nil if none
	// does.
	afterDo, afterCleanup *part[T]
}

// wanted reports whether all conditions around the step hold.
func (p *part[T]) wanted(req *Request[T]) bool {
	for _, c := range p.cond {
		if !c(req) {
			return false
		}
	}
	return true
}

// cleans reports whether the step, if it is wanted, may have something to clean up for an object.
func (p *part[T]) cleans(req *Request[T]) bool {
	return p.Cleanup != nil && (p.Cleans == nil || p.Cleans(req))
}

// A plan is the steps of an engine as actions, built once. The actions find the request in their
// context.
type plan[T client.Object] struct {
	parts             []*part[T]
	do, cleanup, post ctrlkit.Action
	declared          []condition.Declaration
	cleans            bool // a part has something to clean up for all objects
	mayClean          bool // a part may have something for some
	groups            bool // some parts run at the same time
	gates             []func(obj T) (reason, message string)
}

func newPlan[T client.Object](steps []Step[T]) *plan[T] {
	p := &plan[T]{}
	all := p.arrange(&composite[T]{steps: steps}, nil, false)
	p.do, p.cleanup = orNothing(all.do), orNothing(all.cleanup)
	var posts []ctrlkit.Action
	for _, part := range p.parts {
		p.declared = append(p.declared, part.Conditions...)
		if part.Post != nil {
			posts = append(posts, act(part, journal.PhasePost, part.Post))
		}
		p.mayClean = p.mayClean || part.Cleanup != nil && part.Cleans != nil
		p.cleans = p.cleans || part.Cleanup != nil && part.Cleans == nil
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
	if c.order == atOnce && len(c.steps) > 1 {
		grouped, p.groups = true, true
	}
	all := make([]arrangement[T], 0, len(c.steps))
	for _, s := range c.steps {
		if s.inner != nil {
			all = append(all, p.arrange(s.inner, cond, grouped))
			continue
		}
		all = append(all, p.leaf(s, cond, grouped))
	}
	return join(c.order, all)
}

// gated returns why an object is left alone; an empty reason if it is not.
func (p *plan[T]) gated(obj T) (reason, message string) {
	for _, gate := range p.gates {
		if reason, message = gate(obj); reason != "" {
			return reason, message
		}
	}
	return "", ""
}

func (p *plan[T]) leavesAlone(obj T) bool {
	reason, _ := p.gated(obj)
	return reason != ""
}

// leaf returns the arrangement of a step that is not made of others.
func (p *plan[T]) leaf(s Step[T], cond []func(*Request[T]) bool, grouped bool) arrangement[T] {
	part := &part[T]{Step: s, index: len(p.parts), cond: cond, grouped: grouped}
	p.parts = append(p.parts, part)
	if s.Gate != nil {
		p.gates = append(p.gates, s.Gate)
	}
	if s.Do == nil {
		s.Do = func(context.Context, *Request[T]) error { return nil }
	}
	a := arrangement[T]{do: act(part, journal.PhaseDo, s.Do), firstDo: part}
	if s.Cleanup != nil {
		a.cleanup, a.firstCleanup = act(part, journal.PhaseCleanup, s.Cleanup), part
	}
	return a
}

// join makes one arrangement of several.
func join[T client.Object](o order, all []arrangement[T]) arrangement[T] {
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
		} else if o == atOnce {
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
		} else if o == atOnce {
			a.firstCleanup.afterCleanup = last
		}
		last = a.firstCleanup
	}
	run := ctrlkit.Sequential
	switch o {
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
func act[T client.Object](p *part[T], phase journal.Phase, call func(context.Context, *Request[T]) error) ctrlkit.Action {
	return ctrlkit.NewAction(p.Name, func(ctx context.Context) (ctrl.Result, error) {
		req := requestFrom[T](ctx)
		if p.grouped && phase != journal.PhasePost {
			defer req.places.begin(p.index) // also if it never comes to that
			leave, err := req.places.enter(ctx, p.after(phase))
			if err != nil {
				return ctrl.Result{}, fmt.Errorf("it was not begun: %w", err)
			}
			defer leave()
			ctx = context.WithValue(ctx, placeKey{}, &place{places: req.places})
		}
		if phase == journal.PhaseDo && !p.wanted(req) {
			req.skip(ctx, p)
			return ctrlkit.NoRequeue()
		}
		if phase == journal.PhaseDo && p.Claim != nil {
			if err := req.claim(ctx, p); err != nil {
				return ctrl.Result{}, err
			}
		} else if phase == journal.PhaseDo && p.cleans(req) { // its condition may hold only since a step before it
			if err := req.guard(ctx, p); err != nil {
				return ctrl.Result{}, err
			}
		}
		return ctrl.Result{}, req.observe(ctx, p, phase, call)
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
