// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
)

// A run is what the actions of one run of a workflow share. It is nil when there is nothing to
// share and no hook; then a workflow costs nothing but its calls. A run is not changed: with makes
// another one.
type run struct {
	hook   Hook
	order  *order
	scope  *scope  // of the innermost Timeout, nil without one
	within *span   // what the actions that are opened now belong to
	shared *shared // nil if nothing in the workflow needs it
}

type runKey struct{}

// runFrom returns the run that ctx belongs to, nil if there is none.
func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// with returns a context and a run that differs from r in what change does. r may be nil.
func (r *run) with(ctx context.Context, change func(*run)) (context.Context, *run) {
	changed := &run{}
	if r != nil {
		*changed = *r
	}
	change(changed)
	return context.WithValue(ctx, runKey{}, changed), changed
}

// enter returns the run that a combinator's Run is part of. It begins one if something below the
// combinator needs it.
func enter(ctx context.Context, c runner) (context.Context, *run) {
	r := runFrom(ctx)
	if !c.needsRun() && !onceMade.Load() || r != nil && r.shared != nil {
		return ctx, r
	}
	return r.with(ctx, func(r *run) { r.shared = &shared{} })
}

// ContextWithRun returns a context under which everything is one run: an action shared by [Once] is
// run once for all workflows that are run with it. Without it, a run is one call of Run on the
// outermost combinator.
func ContextWithRun(ctx context.Context) context.Context {
	ctx, _ = runFrom(ctx).with(ctx, func(r *run) { r.shared = &shared{} })
	return ctx
}

func (r *run) observer() Hook {
	if r == nil {
		return nil
	}
	return r.hook
}

// ContextWithShuffle returns a context under which [Join] and [ParallelJoin] run their actions in
// an order that depends on seed. It is for tests: a workflow must end in the same state in every
// order.
func ContextWithShuffle(ctx context.Context, seed uint64) context.Context {
	ctx, _ = runFrom(ctx).with(ctx, func(r *run) { r.order = &order{seed: seed} })
	return ctx
}

// order chooses the order in which a Join runs its actions.
type order struct{ seed uint64 }

// at returns which of n actions runs as the i-th. perm is the permutation made by permutation, nil
// for the order given.
func at(perm []int, i int) int {
	if perm == nil {
		return i
	}
	return perm[i]
}

func (r *run) permutation(n int) []int {
	if r == nil || r.order == nil {
		return nil
	}
	return rand.New(rand.NewPCG(r.order.seed, uint64(n))).Perm(n) //nolint:gosec // an order for tests, no secret
}

// notStarted is the error for actions that were not started because ctx is done.
func notStarted[A Action](ctx context.Context, actions ...A) error {
	if len(actions) == 1 {
		return fmt.Errorf("%s was not started: %w", actions[0].Description(), context.Cause(ctx))
	}
	return fmt.Errorf("%s and %d more were not started: %w", actions[0].Description(), len(actions)-1, context.Cause(ctx))
}

// shared is what is the same for all of a run.
type shared struct {
	mu      sync.Mutex // guards the fields below
	results map[*once]*onceResult
	running map[any]*span // the actions that are running under a Timeout, by their identities
}
