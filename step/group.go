package step

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

// When returns a step whose steps are only done for objects that cond is true for. Description says when that is, for [journal.StepSkipped].
//
// Their Cleanup is called for all objects, as cond may have been true once, and so is their Post. The finalizer is put on an object when
// cond is first true. A condition of theirs is good, with reason [ReasonNotNeeded], as long as cond is false.
func When[T client.Object](description string, cond func(req *Request[T]) bool, steps ...Step[T]) Step[T] {
	return &composite[T]{name: description, cond: cond, steps: steps}
}

// Group returns a step whose steps do not depend on each other: all are done, in the order given, also when one of them fails or waits. Their outcomes are
// joined. The steps after the group are reached when all have passed.
func Group[T client.Object](name string, steps ...Step[T]) Step[T] {
	return &composite[T]{name: name, independent: true, steps: steps}
}

// A composite is made of other steps. The engine takes it apart and never calls its methods.
type composite[T client.Object] struct {
	name        string
	cond        func(req *Request[T]) bool
	independent bool
	steps       []Step[T]
}

func (c *composite[T]) Name() string { return c.name }

// Do is there because a composite is a Step; see above.
func (c *composite[T]) Do(context.Context, *Request[T]) (ctrl.Result, error) {
	panic("step: " + c.name + " is made of other steps and can only be given to New, When and Group")
}

// Workflow returns a step that runs a workflow of package ctrlkit, built anew for each reconcile. A generated manager plugs in like this:
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

// RunWorkflow builds a workflow and runs it, for a step of a type of your own. The journal is told of its actions.
func RunWorkflow[T client.Object](ctx context.Context, req *Request[T], build func(req *Request[T]) ctrlkit.Action) (ctrl.Result, error) {
	if run := req.core.run; run != nil {
		ctx = ctrlkit.ContextWithHook(ctx, &actionEvents{run: run, step: req.core.stepName(), table: req.core.table})
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
	poster   Poster[T]
	declared []condition.Declaration
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

// A plan is the steps of an engine as actions, built once. The actions find the request in their context.
type plan[T client.Object] struct {
	parts             []*part[T]
	do, cleanup, post ctrlkit.Action
	declared          []condition.Declaration
	cleans            bool
}

func newPlan[T client.Object](steps []Step[T]) *plan[T] {
	p := &plan[T]{}
	do, cleanup := p.arrange(&composite[T]{steps: steps}, nil)
	p.do, p.cleanup = do, cleanup
	var posts []ctrlkit.Action
	for _, part := range p.parts {
		p.declared = append(p.declared, part.declared...)
		if part.poster != nil {
			posts = append(posts, act(part, journal.Post, func(ctx context.Context, req *Request[T]) (ctrl.Result, error) {
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

// arrange returns the Do of a composite, and its Cleanup, in reverse order.
func (p *plan[T]) arrange(c *composite[T], cond []func(*Request[T]) bool) (do, cleanup ctrlkit.Action) {
	if c.cond != nil {
		cond = append(cond[:len(cond):len(cond)], c.cond)
	}
	var dos, cleanups []ctrlkit.Action
	for _, s := range c.steps {
		if inner, ok := s.(*composite[T]); ok {
			d, cl := p.arrange(inner, cond)
			dos, cleanups = append(dos, d), append([]ctrlkit.Action{cl}, cleanups...)
			continue
		}
		part := &part[T]{step: s, index: len(p.parts), cond: cond}
		p.parts = append(p.parts, part)
		dos = append(dos, act(part, journal.Do, s.Do))
		if part.cleaner, _ = s.(Cleaner[T]); part.cleaner != nil {
			cleanups = append([]ctrlkit.Action{act(part, journal.Cleanup, part.cleaner.Cleanup)}, cleanups...)
		}
		part.poster, _ = s.(Poster[T])
		if manager, ok := s.(ConditionManager[T]); ok {
			part.declared = manager.Conditions()
		}
	}
	if c.independent {
		return ctrlkit.JoinOrdered(dos...), ctrlkit.JoinOrdered(cleanups...)
	}
	return ctrlkit.Sequential(dos...), ctrlkit.Sequential(cleanups...)
}

// act returns a phase of a step as an action that finds its request in the context.
func act[T client.Object](p *part[T], phase journal.Phase, call func(context.Context, *Request[T]) (ctrl.Result, error)) ctrlkit.Action {
	name := p.step.Name()
	return ctrlkit.NewAction(name, func(ctx context.Context) (ctrl.Result, error) {
		req := requestFrom[T](ctx)
		if phase == journal.Do && !p.wanted(req) {
			req.skip(ctx, p)
			return ctrlkit.NoRequeue()
		}
		if phase == journal.Do && p.cleaner != nil && req.protect != nil { // its condition may hold only since a step before it
			if err := req.protect(ctx); err != nil {
				return ctrl.Result{}, err
			}
		}
		return req.observe(ctx, p, phase, call)
	})
}
