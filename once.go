// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// Once returns an action that is run at most once in a run, however often and wherever the returned
// value is used in the workflow. All places receive the outcome of that one time; a place that is
// reached while it is running waits for it, or for the end of its own context.
//
//	endpoint := ctrlkit.Once(mgr.LookUpEndpoint())
//	ctrlkit.ParallelJoin(
//		ctrlkit.Sequential(endpoint, mgr.SyncConfig()),
//		ctrlkit.Sequential(endpoint, mgr.SyncSecret()),
//	)
//
// A run is one call of Run on the outermost combinator, or everything under one [ContextWithRun].
// An action whose function runs the returned value itself, with the context that it received, is
// one of the places.
//
// A failure is shared too. Joined, it is one cause, however many places received it. A [Retry]
// around it does not run the action again: write Once(Retry(...)).
func Once(action Action) Action {
	onceMade.Store(true)
	return &once{action: runnerOf("Once", action)}
}

type once struct{ action runner }

// onceMade reports whether there is a Once in the program, which the function of any action may
// run. Without one no combinator has to begin a run for it.
var onceMade atomic.Bool

func (o *once) Description() string { return o.Describe().String() }
func (o *once) needsRun() bool      { return true }
func (o *once) Describe() outline.Node {
	return outline.Node{Kind: outline.KindOnce, Children: describeAll([]runner{o.action})}
}

func (o *once) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, o)
	return o.runIn(ctx, r)
}

func (o *once) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	result, first := r.shared.once(o, ctx)
	if first {
		defer close(result.done)
		if result.of(ctx, r, o.action); result.err != nil {
			result.err = &sharedError{result.err}
		}
		return result.result, result.err
	}
	return result.await(ctx, o)
}

// onceResult is the outcome of a shared action, there when done is closed.
type onceResult struct {
	returned
	done  chan struct{}
	first context.Context // of the place that runs it: when that ends, the others do not wait for ever
}

// once returns the result of o, and reports whether the caller has to run it.
func (s *shared) once(o *once, ctx context.Context) (result *onceResult, first bool) { //nolint:revive // ctx is a value here
	s.mu.Lock()
	defer s.mu.Unlock()
	if result, ok := s.results[o]; ok {
		return result, false
	}
	result = &onceResult{done: make(chan struct{}), first: ctx}
	if s.results == nil {
		s.results = map[*once]*onceResult{}
	}
	s.results[o] = result
	return result, true
}

// sharedError is the error of a Once. All places receive the same one, so that joining recognizes
// it when it arrives a second time.
type sharedError struct{ err error }

func (s *sharedError) Error() string { return s.err.Error() }
func (s *sharedError) Unwrap() error { return s.err }

func isShared(err error) bool { return sharedIn(err) != nil }

// sharedIn returns err, or what is hidden in it, if it is that of a Once, and nil otherwise.
func sharedIn(err error) *sharedError {
	if hidden, ok := err.(*outcome.Retried); ok { //nolint:errorlint // not what an error in words wraps
		err = hidden.Err
	}
	s, _ := err.(*sharedError) //nolint:errorlint // as above
	return s
}

func (r *onceResult) await(ctx context.Context, o *once) (ctrl.Result, error) {
	select {
	case <-r.done:
		return r.result, r.err
	default:
	}
	select {
	case <-r.done:
		return r.result, r.err
	case <-ctx.Done():
		return ctrl.Result{}, fmt.Errorf("waiting for %s, which runs elsewhere: %w", o.action.Description(), context.Cause(ctx))
	case <-r.first.Done():
	}
	grace := time.NewTimer(TimeoutGrace)
	defer grace.Stop()
	select { // it may honor its context
	case <-r.done:
		return r.result, r.err
	case <-grace.C:
		return ctrl.Result{}, fmt.Errorf("%s, which ran elsewhere, was cut off: %w", o.action.Description(), context.Cause(r.first))
	}
}
