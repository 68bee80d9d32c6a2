// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
)

// ReconcileAction is an [Action].
//
// Deprecated: the name in the ctrlkit RFC. Use Action.
type ReconcileAction = Action

// WrapAction is [NewAction].
//
// Deprecated: the name in the ctrlkit RFC. Use NewAction.
func WrapAction(description string, run func(context.Context) (ctrl.Result, error), opts ...ActionOption) Action {
	return NewAction(description, run, opts...)
}

// ActionFunc is what [NewAction] makes an action of.
//
// Deprecated: a name in the original library. Write the type.
type ActionFunc = func(context.Context) (ctrl.Result, error)

// ExitIf is [Exit] if condition holds, and [NoRequeue] otherwise.
//
// Deprecated: a name in the original library. Write the branches.
func ExitIf(condition bool) (ctrl.Result, error) { //nolint:revive // the flag is the point
	if condition {
		return Exit()
	}
	return NoRequeue()
}

// RequeueIfErrorAndWrap is [RequeueIfError] of err with text before it.
//
// Deprecated: a name in the original library. Use RequeueIfError with fmt.Errorf.
func RequeueIfErrorAndWrap(text string, err error) (ctrl.Result, error) {
	if err == nil {
		return NoRequeue()
	}
	return RequeueIfError(fmt.Errorf("%s: %w", text, err))
}

// NeedsRequeue reports whether there is an error or a requeue in an outcome.
//
// Deprecated: a name in the original library. Test the error, and Result.IsZero.
func NeedsRequeue(result ctrl.Result, err error) bool {
	return err != nil || outcome.Requeues(result)
}

// ActionHook is called before and after each action. Unlike a [Hook], it has no context to replace.
//
// Deprecated: the hook of the original library. Use Hook.
type ActionHook interface {
	// PreRun is called before the states of the action are read: the map is nil. A [Hook] has the
	// states of a generated manager: see [StateFromContext].
	PreRun(ctx context.Context, logger logr.Logger, action string, states map[string]runtime.Object)
	PostRun(ctx context.Context, logger logr.Logger, action string, result ctrl.Result, err error)
}

// WithActionHook has h called around this action, with the logger of the action: see
// [LoggerFromContext].
//
// Deprecated: the hook of the original library. Use WithHook.
func WithActionHook(h ActionHook) ActionOption {
	if h == nil {
		return func(*leaf) {}
	}
	return WithHook(actionHook{h})
}

type actionHook struct{ hook ActionHook }

func (a actionHook) BeforeAction(ctx context.Context, action string) context.Context {
	a.hook.PreRun(ctx, LoggerFromContext(ctx), action, nil)
	return ctx
}

func (a actionHook) AfterAction(ctx context.Context, action string, result ctrl.Result, err error) {
	a.hook.PostRun(ctx, LoggerFromContext(ctx), action, result, err)
}

// ChainedActionHooks are called in their order before an action, and in the reverse after it.
//
// Deprecated: a name in the original library. Use ChainHooks.
type ChainedActionHooks []ActionHook

// ChainActionHooks returns hooks to which others can be added.
//
// Deprecated: a name in the original library. Use ChainHooks.
func ChainActionHooks(hooks ...ActionHook) *ChainedActionHooks {
	return new(append(ChainedActionHooks(nil), hooks...))
}

// Add adds a hook, which is called inside the others.
func (c *ChainedActionHooks) Add(h ActionHook) { *c = append(*c, h) }

// PreRun calls the hooks in their order.
func (c *ChainedActionHooks) PreRun(ctx context.Context, logger logr.Logger, action string, states map[string]runtime.Object) {
	for _, h := range *c {
		h.PreRun(ctx, logger, action, states)
	}
}

// PostRun calls the hooks in the reverse order.
func (c *ChainedActionHooks) PostRun(ctx context.Context, logger logr.Logger, action string, result ctrl.Result, err error) {
	for _, h := range slices.Backward(*c) {
		h.PostRun(ctx, logger, action, result, err)
	}
}

// ControllerManagerActionLifeCycleHook is called before and after each action. Unlike a [Hook], it
// receives neither the outcome of an action nor a context to replace.
//
// Deprecated: the hook in the ctrlkit RFC. Use Hook.
type ControllerManagerActionLifeCycleHook interface {
	BeforeActionRun(action string, ctx context.Context, logger logr.Logger) //nolint:revive // the order in the RFC
	AfterActionRun(action string, ctx context.Context, logger logr.Logger)  //nolint:revive // the order in the RFC
}

// LifeCycleHook returns a [Hook] that calls h, with the action as a value of the logger.
//
// Deprecated: it adapts the hook in the ctrlkit RFC. Use Hook.
func LifeCycleHook(h ControllerManagerActionLifeCycleHook, logger logr.Logger) Hook {
	return lifeCycle{h, logger}
}

// WithImpl has impl called around this action, if it is a [ControllerManagerActionLifeCycleHook], as
// the implementations of the ctrlkit RFC are. Generated managers apply it to theirs: do not pass the
// same value to [LifeCycleHook], too.
func WithImpl(impl any, logger logr.Logger) ActionOption {
	if h, ok := impl.(ControllerManagerActionLifeCycleHook); ok {
		return WithHook(LifeCycleHook(h, logger))
	}
	return func(*leaf) {}
}

type lifeCycle struct {
	hook   ControllerManagerActionLifeCycleHook
	logger logr.Logger
}

func (l lifeCycle) BeforeAction(ctx context.Context, action string) context.Context {
	l.hook.BeforeActionRun(action, ctx, l.logger.WithValues("action", action))
	return ctx
}

func (l lifeCycle) AfterAction(ctx context.Context, action string, _ ctrl.Result, _ error) {
	l.hook.AfterActionRun(action, ctx, l.logger.WithValues("action", action))
}
