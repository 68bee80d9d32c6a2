package ctrlkit

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Once returns an action that is run at most once in a run, however often and wherever in the workflow the returned value stands. All
// places get the outcome of the one time; those that come while it is running wait for it, or for the end of their own context.
//
//	endpoint := ctrlkit.Once(mgr.LookUpEndpoint())
//	ctrlkit.ParallelJoin(
//		ctrlkit.Sequential(endpoint, mgr.SyncConfig()),
//		ctrlkit.Sequential(endpoint, mgr.SyncSecret()),
//	)
//
// A run is one call of Run on the outermost combinator, or everything under one [NewRun].
func Once(action Action) Action {
	return &once{action: runnerOf("Once", action)}
}

type once struct{ action runner }

func (o *once) Description() string { return o.Describe().String() }
func (o *once) needsRun() bool      { return true }
func (o *once) Describe() Node {
	return Node{Kind: KindOnce, Children: describeAll([]runner{o.action})}
}

func (o *once) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, o)
	return o.runIn(ctx, r)
}

func (o *once) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	result, first := r.onces.claim(o, ctx)
	if first {
		defer close(result.done)
		result.of(ctx, r, o.action)
		return result.result, result.err
	}
	return result.await(ctx, o)
}

// onceResult is the outcome of a shared action, there when done is closed.
type onceResult struct {
	outcome
	done  chan struct{}
	first context.Context // of the place that runs it: when that is cut off, the others do not wait for ever
}

// claim returns the result of o, and whether the caller is the one who has to run it.
func (s *onces) claim(o *once, ctx context.Context) (result *onceResult, first bool) { //nolint:revive // ctx is a value here
	s.mu.Lock()
	defer s.mu.Unlock()
	if result, ok := s.results[o]; ok {
		return result, false
	}
	result = &onceResult{done: make(chan struct{}), first: ctx}
	s.results[o] = result
	return result, true
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
		return ctrl.Result{}, fmt.Errorf("%s, which ran elsewhere, was cut off: %w", o.action.Description(), context.Cause(r.first))
	}
}
