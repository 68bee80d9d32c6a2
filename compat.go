// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
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
