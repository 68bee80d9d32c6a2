// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Result.Requeue is deprecated: only RequeueWithBackoff sets it, and it is honored when an action returns it.

package ctrlkit

import (
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
)

// ErrExit ends the workflow without a reason. It is not a failure: [IgnoreExit] takes it out. Test
// for it with errors.Is, which is also true for waits.
var ErrExit = errors.New("exit")

// NoRequeue ends an action that has nothing more to ask for. It has no effect on the workflow.
func NoRequeue() (ctrl.Result, error) { return ctrl.Result{}, nil }

// RequeueImmediately interrupts the workflow and has the request reconciled again at once, without
// backoff. Use it only when the next run will observe something else than this one, or it will run
// for ever; where that is not certain, use [RequeueWithBackoff].
func RequeueImmediately() (ctrl.Result, error) {
	return ctrl.Result{RequeueAfter: outcome.Immediately}, nil
}

// RequeueWithBackoff interrupts the workflow and has the request reconciled again after the backoff
// of the controller's rate limiter: within milliseconds at first, and later each time it is
// returned again. It is not an error. The first reconcile that ends without an error and without a
// requeue, or with a time, resets the backoff. It is what RequeueImmediately of the original library
// did.
//
// It sets the deprecated Result.Requeue, which is the only way to have the backoff without an
// error. Joined with a time, it means that time, or one second if that is sooner.
func RequeueWithBackoff() (ctrl.Result, error) { return ctrl.Result{Requeue: true}, nil }

// RequeueAfter interrupts the workflow and has the request reconciled again after d. A d of zero or
// less, such as the time until an instant that has just passed, means at once.
func RequeueAfter(d time.Duration) (ctrl.Result, error) {
	return ctrl.Result{RequeueAfter: max(d, outcome.Immediately)}, nil
}

// RequeueIfError interrupts the workflow and has the request reconciled again with backoff if err
// is not nil; if it is nil, it is [NoRequeue].
func RequeueIfError(err error) (ctrl.Result, error) { return ctrl.Result{}, err }

// Exit interrupts the workflow without a reason and without a requeue. It is
// RequeueIfError(ErrExit).
func Exit() (ctrl.Result, error) { return RequeueIfError(ErrExit) }

// Wait returns the outcome of an action or a step that can't continue because something is missing:
// what names it ("Secret default/db", "3 of 3 replicas ready"). It interrupts as an error does, and is
// no failure. Nothing is scheduled: a change of something that the operator watches must end the
// wait. Where no watch can, use [Poll].
//
//	return ctrl.Result{}, ctrlkit.Wait("Secret default/db") // in an action
//	return ctrlkit.Wait("Secret default/db")                // in a step
func Wait(what string) error { return &waitSignal{what: what} }

// Poll is [Wait] for what no watch reports, such as something outside the cluster: the request is
// reconciled again after every (at once if that is not positive).
func Poll(what string, every time.Duration) error {
	return &waitSignal{what: what, every: max(every, outcome.Immediately)}
}

// RequeueWithin returns an outcome that interrupts nothing, and has the request reconciled again
// within d (at once if that is not positive) whatever the following actions or steps return. An
// action that interrupts for a time returns [RequeueAfter], and a step [Poll].
func RequeueWithin(d time.Duration) error {
	return &requeueSignal{result: ctrl.Result{RequeueAfter: max(d, outcome.Immediately)}}
}

// AsError returns the outcome of an action as one error, for a function that returns nothing else: a
// step that runs a workflow, or calls a reconciler.
//
//	return ctrlkit.AsError(workflow.Run(ctx))
//
// A time or a requeue in result is in the error, and interrupts if it did. [IgnoreExit] takes it
// out.
func AsError(result ctrl.Result, err error) error {
	if !outcome.Requeues(result) && result.Priority == nil {
		return err
	}
	requeue := &requeueSignal{result: result, interrupts: interrupts(result, err)}
	if err == nil {
		return requeue
	}
	return outcome.JoinErrors([]error{err, requeue})
}

// IgnoreExit turns the outcome of a workflow into what controller-runtime expects from Reconcile:
// exits, waits, blocked actions and [RequeueWithin] are taken out of err, also where they are wrapped
// or joined with others; their times are in the result, and real errors stay.
//
//	return ctrlkit.IgnoreExit(workflow.Run(ctx))
//
// Errors that this package or errors.Join has joined are taken apart for that. Every other error
// that wraps several, such as fmt.Errorf with more than one %w or a type of your own, is one
// failure: if one of its parts is real, it stays whole, with its text and all that errors.Is and
// errors.As find in it, an [ErrExit] too.
//
// A terminal error (reconcile.TerminalError) stays one only if nothing else asks for another
// reconcile. Beside a retryable error, a wait, or a time or requeue in result, errors.Is does not
// find it to be terminal any more, or controller-runtime would drop the request.
//
// Note that controller-runtime checks the error first: beside a real error it uses the backoff and
// not the time in result. It begins sooner than most times and grows beyond them. Where a poll
// must not come later than it asks for, even while something fails, give the controller a rate
// limiter whose longest delay is that time (controller.Options.RateLimiter).
func IgnoreExit(result ctrl.Result, err error) (ctrl.Result, error) {
	result, err = lift(result, err)
	result = outcome.Normalize(result)
	rest := withoutSignals(err)
	if outcome.IsDropped(rest) && (outcome.Requeues(result) || !isSettled(err, nil)) {
		rest = outcome.HideTerminal(rest)
	}
	return result, rest
}

// interrupts reports whether an outcome ends the sequence that it occurs in.
func interrupts(result ctrl.Result, err error) bool {
	if err != nil {
		return !isContinue(err)
	}
	return outcome.Requeues(result)
}

// isContinue reports whether err is nothing but outcomes of [RequeueWithin].
func isContinue(err error) bool {
	rest, _ := without(err, isRequeue)
	return rest == nil
}
