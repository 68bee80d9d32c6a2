// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// If returns action if condition is true, and otherwise an action that does nothing. The condition
// is evaluated while the workflow is built; that of [IfFunc] when the run reaches it.
func If(condition bool, action Action) Action { //nolint:revive // the flag is the point
	return &branch{kind: outline.KindIf, label: fmt.Sprint(condition), static: condition, yes: runnerOf("If", action), no: nop{}}
}

// IfElse returns an action that runs yes if condition is true and no if it is false.
func IfElse(condition bool, yes, no Action) Action { //nolint:revive // the flag is the point
	return &branch{
		kind: outline.KindIfElse, label: fmt.Sprint(condition), static: condition,
		yes: runnerOf("IfElse", yes), no: runnerOf("IfElse", no),
	}
}

// IfFunc returns an action that calls condition when the run reaches it, and runs action if the
// result is true. The description names the condition ("spec.suspend is not set"). An error of
// condition interrupts the workflow like that of an action.
func IfFunc(description string, condition func(context.Context) (bool, error), action Action) Action {
	return newLazy(outline.KindIf, description, condition, runnerOf("IfFunc", action), nop{})
}

// IfElseFunc returns an action that calls condition when the run reaches it, and runs yes or no.
// See [IfFunc].
func IfElseFunc(description string, condition func(context.Context) (bool, error), yes, no Action) Action {
	return newLazy(outline.KindIfElse, description, condition, runnerOf("IfElseFunc", yes), runnerOf("IfElseFunc", no))
}

func newLazy(kind outline.Kind, description string, condition func(context.Context) (bool, error), yes, no runner) *branch {
	if condition == nil {
		panic("ctrlkit: the condition " + description + " is nil")
	}
	return &branch{kind: kind, label: description, lazy: condition, yes: yes, no: no}
}

// branch runs one of two actions.
type branch struct {
	kind    outline.Kind
	label   string
	static  bool
	lazy    func(context.Context) (bool, error) // nil: static holds
	yes, no runner
}

func (b *branch) Description() string { return b.Describe().String() }
func (b *branch) needsRun() bool      { return b.yes.needsRun() || b.no.needsRun() }

func (b *branch) Describe() outline.Node {
	n := outline.Node{Kind: b.kind, Label: b.label, Children: describeAll([]runner{b.yes})}
	if b.kind == outline.KindIfElse {
		n.Children = describeAll([]runner{b.yes, b.no})
	}
	return n
}

func (b *branch) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, b)
	return b.runIn(ctx, r)
}

func (b *branch) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	holds, err := b.holds(ctx)
	switch {
	case err != nil:
		err = fmt.Errorf("condition %s: %w", b.label, err)
		_, _, s := r.open(ctx, nil)
		s.close(ctrl.Result{}, err)
		return ctrl.Result{}, err
	case holds:
		return b.yes.runIn(ctx, r)
	default:
		return b.no.runIn(ctx, r)
	}
}

func (b *branch) holds(ctx context.Context) (holds bool, err error) {
	if b.lazy == nil {
		return b.static, nil
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("was not evaluated: %w", context.Cause(ctx))
	}
	defer func() {
		if v := recover(); v != nil {
			holds, err = false, newPanicError(ctx, b.label, v)
		}
	}()
	return b.lazy(ctx)
}
