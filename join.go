// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Result.Requeue is deprecated: it is never set, and honoured when an action returns it.

package ctrlkit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/outline"
)

// Join runs all actions, whatever any of them returns, and joins the outcomes. The order in which
// they run is not promised: an action that needs another one before it belongs into [JoinOrdered],
// [Sequential] or a [Graph]. [ContextWithShuffle] changes the order in tests.
func Join(actions ...Action) Action {
	return newGroup(outline.KindJoin, actions)
}

// JoinOrdered is [Join] in the order given.
func JoinOrdered(actions ...Action) Action {
	return newGroup(outline.KindJoinOrdered, actions)
}

// ParallelJoin is [Join] with every action on a goroutine of its own. It returns when all have
// ended; only [Timeout] ends the waiting for one that ignores its context. A panic becomes that
// action's [PanicError], with the stack of its goroutine.
func ParallelJoin(actions ...Action) Action {
	return newGroup(outline.KindParallelJoin, actions)
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
	return outline.Node{Kind: g.kind, Children: describeAll(g.actions)}
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
		if all.add(a.runIn(ctx, r)); all.interrupted {
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
	outcomes := make([]outcome, len(g.actions))
	for _, i := range perm {
		outcomes[i].result, outcomes[i].err = g.actions[i].runIn(ctx, r)
	}
	return joinOutcomes(outcomes)
}

func (g *group) parallel(ctx context.Context, r *run) (ctrl.Result, error) {
	if ctx.Err() != nil && len(g.actions) > 0 {
		return ctrl.Result{}, notStarted(ctx, g.actions...)
	}
	outcomes := make([]outcome, len(g.actions))
	perm := r.permutation(len(g.actions))
	var wg sync.WaitGroup
	for k := range g.actions {
		i := at(perm, k)
		wg.Go(func() { outcomes[i].of(ctx, r, g.actions[i]) })
	}
	wg.Wait()
	return joinOutcomes(outcomes)
}

// outcome is what an action on another goroutine returned.
type outcome struct {
	result ctrl.Result
	err    error
}

func (o *outcome) text() string {
	if o.err == nil {
		return ""
	}
	return o.err.Error()
}

// of runs a and keeps what it returns. Nothing escapes it: not a panic of a hook or a condition,
// and not runtime.Goexit, which would otherwise pass for success.
func (o *outcome) of(ctx context.Context, r *run, a runner) {
	returned := false
	defer func() {
		if returned {
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
	returned = true
}

var errGoexit = errors.New("its goroutine was ended by runtime.Goexit (does it call FailNow of a test?)")

func joinOutcomes(outcomes []outcome) (ctrl.Result, error) {
	var all joined
	for _, o := range outcomes {
		all.add(o.result, o.err)
	}
	return all.outcome()
}

// joined gathers outcomes by the rules in the package's comment. The zero value is the identity.
type joined struct {
	result      ctrl.Result
	errs        []error // without the mark to go on
	goOn        bool
	interrupted bool
}

func (j *joined) add(result ctrl.Result, err error) {
	if err != nil || result != (ctrl.Result{}) {
		j.join(result, err)
	}
}

func (j *joined) join(result ctrl.Result, err error) {
	j.result = joinResults(j.result, result)
	j.interrupted = j.interrupted || interrupts(result, err)
	switch {
	case err == nil:
	case isGoOn(err):
		j.goOn = true
	default:
		for _, cause := range flat(err) {
			if !j.shares(cause) {
				j.errs = append(j.errs, cause)
			}
		}
	}
}

// shares reports whether err is that of a [Once] and has been gathered before, in another place
// where it stands.
func (j *joined) shares(err error) bool {
	s := sharedIn(err)
	return s != nil && slices.ContainsFunc(j.errs, func(other error) bool { return sharedIn(other) == s })
}

// outcome returns what was gathered. The mark to go on is left out once something interrupts: the
// time that it asked for is in the result.
func (j *joined) outcome() (ctrl.Result, error) {
	if j.goOn && !j.interrupted {
		return j.result, errGoOn
	}
	j.keepRetrying()
	return j.result, joinErrors(j.errs)
}

// keepRetrying hides the mark of terminal errors that something asks for another reconcile beside.
func (j *joined) keepRetrying() {
	if !slices.ContainsFunc(j.errs, isDropped) {
		return
	}
	if requeues(j.result) || slices.ContainsFunc(j.errs, func(err error) bool { return !isSettled(err, nil) }) {
		for i, err := range j.errs {
			j.errs[i] = hideTerminal(err)
		}
	}
}

func joinResults(a, b ctrl.Result) ctrl.Result {
	return ctrl.Result{
		Requeue:      a.Requeue || b.Requeue,
		RequeueAfter: sooner(a.RequeueAfter, b.RequeueAfter),
		Priority:     higher(a.Priority, b.Priority),
	}
}

func higher(a, b *int) *int {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}

// sooner returns the shorter of two delays, where zero is none and a negative one is at once.
func sooner(a, b time.Duration) time.Duration {
	a, b = asDelay(a), asDelay(b)
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

func asDelay(d time.Duration) time.Duration {
	if d < 0 {
		return immediately
	}
	return d
}
