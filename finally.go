// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// FinallyGrace is how long the tail of a [Finally] may take once the context of the run is done. It
// fits into the 30 s that a controller-runtime manager grants its workers to end, and Kubernetes a
// Pod, also when one Finally is inside another.
const FinallyGrace = 10 * time.Second

// Finally runs action and then tail, whatever action returned: also after an error, a panic, an
// exit or a wait, and joins the two outcomes. It is the place for what always has to be done, such
// as updating the status:
//
//	ctrlkit.Finally(workflow, mgr.UpdateStatus())
//
// Note that `defer mgr.UpdateStatus()` builds an action and does not run it; `ctrlkit vet` reports
// that.
//
// The tail runs even if the run has ended: its context has the values of the run's context and does
// not end with it. When the run is canceled (a shutdown) or its time is over (a [Timeout] around
// it), before the tail or while it runs, the tail has [FinallyGrace] from then on. A deadline of
// the run's context is moved by as much in that of the tail.
func Finally(action, tail Action) Action {
	return &finally{action: runnerOf("Finally", action), tail: runnerOf("Finally", tail)}
}

type finally struct{ action, tail runner }

func (f *finally) Description() string { return f.Describe().String() }
func (f *finally) needsRun() bool      { return f.action.needsRun() || f.tail.needsRun() }
func (f *finally) Describe() outline.Node {
	return outline.Node{Kind: outline.KindFinally, Children: describeAll([]runner{f.action, f.tail})}
}

func (f *finally) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, f)
	return f.runIn(ctx, r)
}

func (f *finally) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	var body returned
	body.of(ctx, r, f.action)
	var all joined
	all.add(body.result, body.err)
	all.add(f.runTail(ctx, r))
	return all.outcome()
}

func (f *finally) runTail(ctx context.Context, r *run) (ctrl.Result, error) {
	ctx, cancel := tailContext(ctx)
	defer cancel()
	return f.tail.runIn(ctx, r)
}

// tailContext returns a context with the values of ctx that lives FinallyGrace longer. A deadline
// of ctx is moved; a cancellation begins the grace when it comes.
func tailContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == nil {
		return ctx, func() {}
	}
	detached := context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		return context.WithTimeout(detached, FinallyGrace)
	}
	release := func() {}
	if deadline, ok := ctx.Deadline(); ok {
		detached, release = context.WithDeadline(detached, deadline.Add(FinallyGrace))
	}
	tail, expire := context.WithCancelCause(detached)
	stop := context.AfterFunc(ctx, func() {
		if _, moved := tail.Deadline(); moved && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return
		}
		select {
		case <-time.After(FinallyGrace):
			expire(fmt.Errorf("the tail took longer than %s after the end of the run: %w", FinallyGrace, context.Cause(ctx)))
		case <-tail.Done():
		}
	})
	return tail, func() {
		stop()
		expire(nil)
		release()
	}
}
