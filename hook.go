// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A Hook is called before and after each action of a workflow that has work of its own, not for
// combinators. The states of a generated action are read between the two calls.
//
// Its methods are called on the goroutine of the action, so several at once in a workflow that runs
// in parallel, and must not block. A panic of a method fails the action with a [PanicError]; the
// other hooks and actions are not affected.
type Hook interface {
	// BeforeAction is called before action runs. The action and AfterAction receive the context
	// that it returns, which must be ctx or derived from it. If it panics, the action does not run,
	// and AfterAction is not called.
	BeforeAction(ctx context.Context, action string) context.Context

	// AfterAction is called after action has run, also when it failed or panicked, or was refused
	// with [ErrStillRunning]. The outcome is not joined yet: exits and waits are in err.
	AfterAction(ctx context.Context, action string, result ctrl.Result, err error)
}

type detailsKey struct{}

// withDetails returns a context in which hooks find the state and the logger of l.
func (l *leaf) withDetails(ctx context.Context) context.Context {
	if l.state == nil && l.logger.GetSink() == nil {
		return ctx
	}
	return context.WithValue(ctx, detailsKey{}, l)
}

// StateFromContext returns what the action of a hook's ctx reads the world from, such as the
// getters of a generated manager, if it was set (see [WithState]) and is a T. The state belongs to
// one reconcile, and so do the objects in it: getters of generated managers return copies. Actions
// that run inside the action of a manager inherit its state.
//
//	getter, ok := ctrlkit.StateFromContext[manager.CronJobControllerManagerStateGetter](ctx)
func StateFromContext[T any](ctx context.Context) (state T, ok bool) {
	if l, known := ctx.Value(detailsKey{}).(*leaf); known {
		state, ok = l.state.(T)
	}
	return state, ok
}

// LoggerFromContext returns the logger of the action of a hook's ctx, with the action as a value in
// it, if it was set (see [WithLogger]), and otherwise that of ctx (log.FromContext).
func LoggerFromContext(ctx context.Context) logr.Logger {
	if l, known := ctx.Value(detailsKey{}).(*leaf); known && l.logger.GetSink() != nil {
		return l.logger.WithValues("action", l.description)
	}
	return log.FromContext(ctx)
}

// A BlockHook is a [Hook] that is also called for the actions of a [Graph] that are not run because
// others did not pass.
type BlockHook interface {
	Hook
	// ActionBlocked is called once for every such action, with the descriptions of those that
	// failed or wait.
	ActionBlocked(ctx context.Context, action string, by []string)
}

// ContextWithHook returns a context under which h is called around every action, inside the hooks
// that ctx has already.
func ContextWithHook(ctx context.Context, h Hook) context.Context {
	ctx, _ = runFrom(ctx).with(ctx, func(r *run) { r.hook = ChainHooks(r.hook, h) })
	return ctx
}

// ChainHooks returns a hook that calls all of hooks: before an action in the order given, after it
// in the reverse. Nil hooks are left out; without any other it returns nil.
func ChainHooks(hooks ...Hook) Hook {
	var chain hookChain
	for _, h := range hooks {
		switch h := h.(type) {
		case nil:
		case hookChain:
			chain = append(chain, h...)
		default:
			chain = append(chain, h)
		}
	}
	switch len(chain) {
	case 0:
		return nil
	case 1:
		return chain[0]
	default:
		return chain
	}
}

type hookChain []Hook

var _ BlockHook = hookChain(nil)

func (c hookChain) BeforeAction(ctx context.Context, action string) context.Context {
	for _, h := range c {
		ctx = h.BeforeAction(ctx, action)
	}
	return ctx
}

func (c hookChain) AfterAction(ctx context.Context, action string, result ctrl.Result, err error) {
	for i := len(c) - 1; i >= 0; i-- {
		c[i].AfterAction(ctx, action, result, err)
	}
}

func (c hookChain) ActionBlocked(ctx context.Context, action string, by []string) {
	for _, h := range c {
		if b, ok := h.(BlockHook); ok {
			b.ActionBlocked(ctx, action, by)
		}
	}
}

// hooked runs inner, which is action or has hooks of its own around it, between the two calls of h.
// Each hook of a chain receives the context that it has returned, and is called after the action if
// and only if it was called before it.
func hooked(ctx context.Context, h Hook, action string, inner func(context.Context) (ctrl.Result, error)) (ctrl.Result, error) {
	switch chain, ok := h.(hookChain); {
	case h == nil || ok && len(chain) == 0:
		return inner(ctx)
	case ok:
		return hooked(ctx, chain[0], action, func(ctx context.Context) (ctrl.Result, error) {
			return hooked(ctx, chain[1:], action, inner)
		})
	}
	inside := ctx
	if err := caught(ctx, action, func() { inside = h.BeforeAction(ctx, action) }); err != nil {
		return ctrl.Result{}, err
	}
	result, err := inner(inside)
	panicked := caught(ctx, action, func() { h.AfterAction(inside, action, result, err) })
	if panicked == nil {
		return result, err
	}
	var all joined
	all.add(result, err)
	all.add(ctrl.Result{}, panicked)
	return all.outcome()
}

// caught calls a hook and returns its panic as the error of action.
func caught(ctx context.Context, action string, call func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &ActionError{Action: action, Err: fmt.Errorf("hook: %w", newPanicError(ctx, action, v))}
		}
	}()
	call()
	return nil
}

// LogHook returns a hook that logs the beginning and the end of every action to logger at verbosity
// 1, and real errors to its error log; a wait is not one. A zero logger stands for the one in the
// context.
func LogHook(logger logr.Logger) Hook { return logHook{logger} }

type logHook struct{ logger logr.Logger }

func (h logHook) from(ctx context.Context) logr.Logger {
	if h.logger.GetSink() == nil {
		return log.FromContext(ctx)
	}
	return h.logger
}

func (h logHook) BeforeAction(ctx context.Context, action string) context.Context {
	h.from(ctx).V(1).Info("Action begins", "action", action)
	return ctx
}

func (h logHook) AfterAction(ctx context.Context, action string, result ctrl.Result, err error) {
	logger := h.from(ctx).WithValues("action", action)
	if failure := withoutSignals(err); failure != nil {
		logger.Error(failure, "Action failed")
		return
	}
	for _, w := range Waits(err) {
		logger.V(1).Info("Action waits", "for", w.For, "every", w.Every)
	}
	logger.V(1).Info("Action ends", "exit", errors.Is(err, ErrExit), "requeueAfter", result.RequeueAfter)
}
