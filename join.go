// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// Join runs all actions, whatever any of them returns, and joins the outcomes. The order in which
// they run is not promised: an action that needs another one before it belongs in [JoinOrdered],
// [Sequential] or a [Graph]. [ContextWithShuffle] changes the order in tests.
func Join(actions ...Action) Action {
	return newGroup(outline.KindJoin, actions)
}

// JoinOrdered is [Join] in the order given.
func JoinOrdered(actions ...Action) Action {
	return newGroup(outline.KindJoinOrdered, actions)
}

// ParallelJoin is [Join] with every action on a goroutine of its own. It returns when all have
// ended; only a [Timeout] stops waiting for one that ignores its context. A panic becomes that
// action's [PanicError], with the stack of its goroutine.
func ParallelJoin(actions ...Action) Action {
	return newGroup(outline.KindParallelJoin, actions)
}

// ParallelJoinLimit is [ParallelJoin] with at most limit of the actions running at the same time.
// The next one, in the order given, begins when one has ended. It panics if limit is less than 1.
func ParallelJoinLimit(limit int, actions ...Action) Action {
	if limit < 1 {
		panic(fmt.Sprintf("ctrlkit: ParallelJoinLimit(%d): at least one action has to run", limit))
	}
	g := newGroup(outline.KindParallelJoin, actions)
	g.limit = limit
	return g
}

// Sequential runs actions one after the other. If one interrupts the workflow (an error, a wait, an
// exit, a requeue), those after it are not run, and its outcome is that of the sequence.
func Sequential(actions ...Action) Action {
	return newGroup(outline.KindSequential, actions)
}

// group runs several actions and joins what they return.
type group struct {
	kind    outline.Kind
	actions []runner
	shares  bool
	limit   int // of a parallel join, 0 for none
}

func newGroup(kind outline.Kind, actions []Action) *group {
	g := &group{kind: kind, actions: runners(kind.String(), actions)}
	for _, a := range g.actions {
		g.shares = g.shares || a.needsRun()
	}
	return g
}

func (g *group) Description() string { return g.Describe().String() }
func (g *group) needsRun() bool      { return g.shares }
func (g *group) Describe() outline.Node {
	return outline.Node{Kind: g.kind, Label: limitText(g.limit), Children: describeAll(g.actions)}
}

// limitText describes a limit of how many actions run at the same time.
func limitText(limit int) string {
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf("at most %d", limit)
}

func (g *group) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, g)
	return g.runIn(ctx, r)
}

func (g *group) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	switch g.kind {
	case outline.KindSequential:
		return g.sequential(ctx, r)
	case outline.KindParallelJoin:
		return g.parallel(ctx, r)
	case outline.KindJoin:
		return g.each(ctx, r, r.permutation(len(g.actions)))
	default:
		return g.each(ctx, r, nil)
	}
}

func (g *group) sequential(ctx context.Context, r *run) (ctrl.Result, error) {
	var all joined
	for i, a := range g.actions {
		if ctx.Err() != nil {
			all.add(ctrl.Result{}, notStarted(ctx, g.actions[i:]...))
			break
		}
		if all.add(a.runIn(ctx, r)); all.sum.Interrupted() {
			break
		}
	}
	return all.outcome()
}

func (g *group) each(ctx context.Context, r *run, perm []int) (ctrl.Result, error) {
	if perm != nil {
		return g.permuted(ctx, r, perm)
	}
	var all joined
	for i, a := range g.actions {
		if ctx.Err() != nil {
			all.add(ctrl.Result{}, notStarted(ctx, g.actions[i:]...))
			break
		}
		all.add(a.runIn(ctx, r))
	}
	return all.outcome()
}

// permuted runs the actions in the order of perm and joins what they return in the order given, so
// that the text of an error does not depend on perm.
func (g *group) permuted(ctx context.Context, r *run, perm []int) (ctrl.Result, error) {
	outcomes := make([]returned, len(g.actions))
	for _, i := range perm {
		outcomes[i].result, outcomes[i].err = g.actions[i].runIn(ctx, r)
	}
	return joinOutcomes(outcomes)
}

func (g *group) parallel(ctx context.Context, r *run) (ctrl.Result, error) {
	if ctx.Err() != nil && len(g.actions) > 0 {
		return ctrl.Result{}, notStarted(ctx, g.actions...)
	}
	outcomes := make([]returned, len(g.actions))
	started := make([]bool, len(g.actions))
	slots := make(chan struct{}, cmp.Or(g.limit, len(g.actions)))
	perm := r.permutation(len(g.actions))
	var wg sync.WaitGroup
	for k := range g.actions {
		slots <- struct{}{} // waits for one to end
		if k >= cap(slots) && ctx.Err() != nil {
			break
		}
		i := at(perm, k)
		started[i] = true
		wg.Go(func() {
			defer func() { <-slots }()
			outcomes[i].of(ctx, r, g.actions[i])
		})
	}
	wg.Wait()
	var canceled []runner
	for i, a := range g.actions {
		if !started[i] {
			canceled = append(canceled, a)
		}
	}
	if len(canceled) > 0 {
		outcomes = append(outcomes, returned{err: notStarted(ctx, canceled...)})
	}
	return joinOutcomes(outcomes)
}

// returned is what an action on another goroutine returned.
type returned struct {
	result ctrl.Result
	err    error
}

func (o *returned) text() string {
	if o.err == nil {
		return ""
	}
	return o.err.Error()
}

// of runs a and keeps what it returns. A panic of a hook or a condition becomes an error, and so
// does runtime.Goexit, which would otherwise count as success.
func (o *returned) of(ctx context.Context, r *run, a runner) {
	ended := false
	defer func() {
		if ended {
			return
		}
		var err error
		if v := recover(); v != nil {
			err = newPanicError(ctx, a.Description(), v)
		} else {
			err = errGoexit
		}
		o.result, o.err = ctrl.Result{}, &ActionError{Action: a.Description(), Err: err}
	}()
	o.result, o.err = a.runIn(ctx, r)
	ended = true
}

var errGoexit = errors.New("its goroutine was ended by runtime.Goexit (does it call FailNow of a test?)")

func joinOutcomes(outcomes []returned) (ctrl.Result, error) {
	var all joined
	for _, o := range outcomes {
		all.add(o.result, o.err)
	}
	return all.outcome()
}

// joined gathers outcomes by the rules in the package's comment. The zero value is the identity.
//
// The rules themselves are those of package outcome. Joined adds the parts that only workflows
// have: the mark of [RequeueWithin], the error of a [Once] that arrives in several places, and
// signals that travel as errors.
type joined struct {
	sum       outcome.Sum[Waiting] // its causes are without errContinue, its waits are among the causes
	continued bool                 // errContinue was among the errors
	shared    map[*sharedError]bool
}

func (j *joined) add(result ctrl.Result, err error) {
	if err == nil && result == (ctrl.Result{}) {
		return
	}
	part := outcome.Outcome[Waiting]{Result: result, Interrupted: interrupts(result, err)}
	if err != nil && isContinue(err) {
		j.continued = true
	} else {
		part.Causes = j.unshared(outcome.CausesOf(err))
	}
	j.sum.Add(part)
}

// unshared returns causes without errors of a [Once] that were gathered before from another place
// where it is used.
func (j *joined) unshared(causes []error) []error {
	if !slices.ContainsFunc(causes, isShared) {
		return causes
	}
	var kept []error
	for _, cause := range causes {
		if s := sharedIn(cause); s != nil {
			if j.shared[s] {
				continue
			}
			if j.shared == nil {
				j.shared = map[*sharedError]bool{}
			}
			j.shared[s] = true
		}
		kept = append(kept, cause)
	}
	return kept
}

// outcome returns what was gathered. The mark to continue is left out once something interrupts:
// the time that it asked for is in the result.
func (j *joined) outcome() (ctrl.Result, error) {
	all := j.sum.Outcome()
	if j.continued && !all.Interrupted {
		return all.Result, errContinue
	}
	return all.Result, outcome.JoinErrors(hideTerminals(all))
}

// hideTerminals returns the causes. The mark of terminal ones is hidden if something beside them
// asks for another reconcile.
func hideTerminals(all outcome.Outcome[Waiting]) []error {
	causes := all.Causes
	if !slices.ContainsFunc(causes, outcome.IsDropped) {
		return causes
	}
	if !outcome.Requeues(all.Result) && !slices.ContainsFunc(causes, func(err error) bool { return !isSettled(err, nil) }) {
		return causes
	}
	hidden := make([]error, len(causes))
	for i, err := range causes {
		hidden[i] = outcome.HideTerminal(err)
	}
	return hidden
}
