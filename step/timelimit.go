// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ctrlkit/ctrlkit/journal"
)

// defaultStepTimeout is the limit of a phase of a step, unless the options have one.
const defaultStepTimeout = 5 * time.Minute

// lateAfter is the part of its limit after which a phase is reported: while it can still be canceled.
const lateAfter = 5

// errLate is why the context of a step is done after its time.
var errLate = errors.New("the time of a step is over")

// limited calls a phase of a step with a context that is done after the limit. A phase that takes
// long is reported while it runs, and once more if it ignores that its context is done.
func (r *Request[T]) limited(
	ctx context.Context, p *part[T], phase journal.Phase, call func(context.Context, *Request[T]) error,
) error {
	if r.limit == 0 { // the request was made by hand
		return call(ctx, r)
	}
	began := time.Now()
	report := func() {
		r.reportLate(context.WithoutCancel(ctx), p.Name, phase, time.Since(began).Round(time.Second))
	}
	defer time.AfterFunc(r.limit/lateAfter, report).Stop()
	defer time.AfterFunc(r.limit+time.Second, report).Stop()
	limited, cancel := context.WithTimeoutCause(ctx, r.limit, errLate)
	defer cancel()
	err := call(limited, r)
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(limited), errLate) {
		err = fmt.Errorf("its time of %v (Options.StepTimeout) is over: %w", r.limit, err)
	}
	return err
}

// reportLate reports a phase of a step that is still running. It runs beside the step, and so does
// not touch Object.
func (r *Request[T]) reportLate(ctx context.Context, step string, phase journal.Phase, after time.Duration) {
	late := journal.StepLate{Step: step, Phase: phase, After: after, Limit: r.limit}
	r.Logger.Info("A step takes long", "step", step, "phase", phase, "after", after, "limit", r.limit)
	if r.journal != nil {
		r.journal.Note(ctx, late)
	}
	if r.Recorder != nil {
		r.Recorder.Eventf(r.snapshot, nil, corev1.EventTypeWarning, reasonStepLate, "Reconcile", "%s", late)
	}
}
