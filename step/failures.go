// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/failure"
)

// A queueLimiter is the limiter of the queue. The engine alone forgets failures: the queue would
// forget those of an object that waits for its cache, or for something else between two failures.
type queueLimiter struct {
	*failure.Limiter[reconcile.Request]
}

// Forget implements [workqueue.TypedRateLimiter].
func (queueLimiter) Forget(reconcile.Request) {}

// failures classifies the failures of a reconcile, and counts them.
type failures struct {
	table     *failure.Table
	limiter   *failure.Limiter[reconcile.Request]
	request   reconcile.Request
	conflicts *int // in a row
	count     int  // of the failures in a row
}

// classify sets the class, the severity and the backoff of a failure.
func (f *failures) classify(ctx context.Context, out *outcome) {
	if out.err == nil {
		return
	}
	out.failure = f.table.Classify(out.err)
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		out.failure = f.table.Classify(context.Canceled)
		out.silent = true
	case out.failure.Class == failure.ClassCanceled:
		// The reconcile itself is not canceled: a step has canceled a context of its own, which is
		// an error like any other.
		out.failure = f.table.Classify(errors.New(out.err.Error()))
	}
	if out.failure.Class == failure.ClassConflict && !out.silent {
		// It is retried without being an error, so that the queue forgets it: it is counted here.
		*f.conflicts++
		f.count, out.delay = *f.conflicts, out.failure.Backoff.Delay(*f.conflicts)
		if out.silent = out.failure.Silent(f.count); out.silent {
			return
		}
	}
	f.count, out.delay = f.limiter.Failed(f.request, out.failure)
	out.silent = out.silent || out.failure.Silent(max(f.count, *f.conflicts))
}

// atMost shortens the backoff of a failure to a time that was requested beside it, zero if none
// was. It reports whether it has.
func (f *failures) atMost(out *outcome, after time.Duration) bool {
	if after <= 0 || after >= out.delay {
		return false
	}
	f.limiter.AtMost(f.request, after)
	out.delay = after
	return true
}

// forget notes that there was no failure.
func (f *failures) forget() {
	*f.conflicts = 0
	f.limiter.Forget(f.request)
}
