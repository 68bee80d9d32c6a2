// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
)

// outcome is what steps have returned, taken apart.
type outcome struct {
	err   error
	waits []ctrlkit.Wait
	after time.Duration
	// priority is what a step wants for the next reconcile, nil if none does.
	priority *int
	verdict  failure.Classification
	silent   bool
	delay    time.Duration // of the backoff
	// passed says that nothing has interrupted the steps: no error, wait, requeue or exit.
	passed bool
}

func (r *run[T]) outcome(result ctrl.Result, err error) outcome {
	o := outcome{waits: ctrlkit.Waits(err)}
	signal := err
	result, o.err = ctrlkit.IgnoreExit(result, err)
	o.after, o.priority = result.RequeueAfter, result.Priority
	for _, w := range o.waits { // also of those that travelled as an error alone
		if w.Every > 0 && (o.after == 0 || w.Every < o.after) {
			o.after = w.Every
		}
	}
	//lint:ignore SA1019 deprecated upstream: never set here, honoured when a step returns it
	if o.after == 0 && result.Requeue {
		o.after = time.Second
	}
	// A time beside the mark of ContinueAndRequeueAfter, which is all that can be left of such an error,
	// interrupts nothing.
	o.passed = o.err == nil && len(o.waits) == 0 && !errors.Is(signal, ctrlkit.ErrExit) && (o.after == 0 || signal != nil)
	return o
}

// join keeps every cause, and the sooner of two times.
func (o outcome) join(p outcome) outcome {
	switch {
	case o.err == nil:
		o.err = p.err
	case p.err != nil:
		o.err = &joined{[]error{o.err, p.err}}
	}
	o.waits = append(o.waits, p.waits...)
	o.passed = o.passed && p.passed
	if o.priority == nil || p.priority != nil && *p.priority > *o.priority {
		o.priority = p.priority
	}
	if o.after == 0 || p.after > 0 && p.after < o.after {
		o.after = p.after
	}
	return o
}

// joined are errors of several parts of a reconcile, in one line.
type joined struct{ errs []error }

func (j *joined) Unwrap() []error { return j.errs }
func (j *joined) Error() string {
	texts := make([]string, len(j.errs))
	for i, err := range j.errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}
