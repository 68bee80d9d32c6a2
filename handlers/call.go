// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
	"github.com/ctrlkit/ctrlkit/journal"
)

// run calls a handler with a copy of the object. A panic is an error.
func (p *pass) run(ctx context.Context, e *entry) journalOutcome {
	result, err := ctrlkit.NewAction(e.name, func(ctx context.Context) (ctrl.Result, error) {
		if p.object == nil {
			return ctrl.Result{}, e.gone(ctx, p.name)
		}
		return ctrl.Result{}, e.change(ctx, p.object.DeepCopyObject().(client.Object)) //nolint:errcheck // a copy has the type
	}).Run(ctx)
	o := journalOutcome{waits: ctrlkit.Waits(err)}
	result, o.err = ctrlkit.IgnoreExit(result, err)
	o.after = outcome.Delay(result)
	return o
}

// journalOutcome is what a handler has returned, taken apart.
type journalOutcome struct {
	err   error
	waits []ctrlkit.Waiting
	after time.Duration // zero for never
}

// isSelected reports whether a handler is for the object. A panic is an error.
func (p *pass) isSelected(ctx context.Context, e *entry) (is bool, err error) {
	if e.selects == nil {
		return true, nil
	}
	_, err = ctrlkit.NewAction(e.name, func(context.Context) (ctrl.Result, error) {
		is = e.selects(p.object)
		return ctrl.Result{}, nil
	}).Run(ctx)
	return is, err
}

// again notes that a handler is due at a time.
func (p *pass) again(e *entry, after time.Duration, failed bool) {
	if !e.isStopped() {
		p.kind.due.add(p.name, call{entry: e, at: time.Now().Add(after), failed: failed})
	}
}

// note notes the outcome of a call: in the journal, and when the handler is due again.
func (p *pass) note(ctx context.Context, e *entry, o journalOutcome, began time.Time) {
	k := p.kind
	ended := journal.Outcome{Err: o.err, RequeueAfter: o.after}
	for _, w := range o.waits {
		ended.Waits = append(ended.Waits, journal.Wait{For: w.For, Every: w.Every})
	}
	switch {
	case o.err != nil && isStopping(ctx):
		// The process ends.
	case o.err != nil:
		classified := k.registry.options.Failures.Classify(o.err)
		ended.Class, ended.Remedy = string(classified.Class), classified.Remedy
		failures, delay := e.tries.Failed(p.name, classified)
		asked := o.after > 0 && o.after < delay
		if asked {
			delay = o.after
		}
		p.again(e, delay, !asked)
		if classified.Class == failure.ClassConflict && classified.Silent(failures) {
			log.FromContext(ctx).V(1).Info("Trying again after a conflict", "failure", o.err.Error(), "after", delay)
			break
		}
		p.errs = append(p.errs, o.err)
		if classified.Severity >= p.worst.Severity {
			p.worst = classified
		}
	default:
		e.tries.Forget(p.name)
		p.waits = append(p.waits, ended.Waits...)
		if o.after > 0 {
			p.again(e, o.after, false)
		}
	}
	if p.journal != nil {
		p.journal.Note(ctx, journal.StepEnded{Step: e.name, Phase: journal.PhaseDo, Outcome: ended, Duration: time.Since(began)})
	}
}

// callEngine has the engine of a handler reconcile the object. The engine keeps a journal of its
// own.
func (p *pass) callEngine(ctx context.Context, e *entry) {
	request := reconcile.Request{NamespacedName: p.name}
	if p.object == nil && e.gone != nil && !p.moved {
		p.note(ctx, e, p.run(p.begin(ctx, e), e), p.began)
	}
	result, err := ctrlkit.NewAction(e.name, func(ctx context.Context) (ctrl.Result, error) { // a panic is an error of this handler
		return e.engine.Reconcile(ctx, request)
	}).Run(&callContext{Context: ctx, entry: e})
	switch {
	case err != nil && isStopping(ctx):
	case err != nil:
		p.errs = append(p.errs, err)
		p.again(e, e.engine.Limiter().When(request), true)
	case result.RequeueAfter > 0:
		p.again(e, result.RequeueAfter, false)
	}
}

// isStopping reports whether a call has ended because the process does, and need not be made again. A
// Lease that has expired may be renewed after all.
func isStopping(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, context.Canceled) && !errors.Is(cause, tenure.ErrExpired)
}
