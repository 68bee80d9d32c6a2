// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Result.Requeue is deprecated: it is honored when an action or a step returns it.

package outcome

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Immediately is the delay of a requeue that should not wait: the shortest that controller-runtime
// does not take for none.
const Immediately = time.Nanosecond

// LegacyRequeue is the delay that stands for the deprecated Result.Requeue where the backoff of the
// queue cannot: beside a time, controller-runtime would use the time alone and requeue later than
// the part that set Requeue wanted.
const LegacyRequeue = time.Second

// joinResults returns the result that asks for whatever a or b asks for.
func joinResults(a, b reconcile.Result) reconcile.Result {
	return reconcile.Result{
		Requeue:      a.Requeue || b.Requeue,
		RequeueAfter: sooner(a.RequeueAfter, b.RequeueAfter),
		Priority:     higher(a.Priority, b.Priority),
	}
}

// Requeues reports whether result asks for another reconcile.
func Requeues(result reconcile.Result) bool { return result.RequeueAfter != 0 || result.Requeue }

// Normalize returns result in a form that controller-runtime requeues no later than it says: not
// with a negative time, which it would ignore, nor with both a time and Requeue.
func Normalize(result reconcile.Result) reconcile.Result {
	result.RequeueAfter = asDelay(result.RequeueAfter)
	if result.RequeueAfter > 0 && result.Requeue {
		result.Requeue = false
		result.RequeueAfter = min(result.RequeueAfter, LegacyRequeue)
	}
	return result
}

// Delay returns after which time a normal result is reconciled again, zero for never.
func Delay(result reconcile.Result) time.Duration {
	if result.RequeueAfter == 0 && result.Requeue {
		return LegacyRequeue
	}
	return result.RequeueAfter
}

// sooner returns the shorter of two delays, where zero is none.
func sooner(a, b time.Duration) time.Duration {
	a, b = asDelay(a), asDelay(b)
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

func asDelay(d time.Duration) time.Duration {
	if d < 0 {
		return Immediately
	}
	return d
}

// higher returns the higher of two priorities, where nil is none.
func higher(a, b *int) *int {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}
