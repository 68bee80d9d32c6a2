// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package outcome joins the outcomes of the parts of a reconcile into one. It is a package of its own
// because every floor that runs several parts uses it: actions in a workflow, steps of an object,
// handlers of a kind.
//
//	var sum outcome.Sum[ctrlkit.Waiting]
//	for _, part := range parts {
//		sum.Add(part)
//	}
//	all := sum.Outcome()
//	return all.Result, all.Err()
//
// The package knows neither workflows nor signals: the caller decides what of an error is a wait or
// an exit, and whether a part interrupts.
package outcome

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An Outcome is what one part of a reconcile, or several joined, ended with. The zero value is the
// outcome of a part that passed and asks for nothing.
//
// W is the type of waits. A floor that keeps its waits among the errors leaves Waits empty.
type Outcome[W any] struct {
	// Result says when to reconcile again.
	Result reconcile.Result
	// Causes are the errors, in the order of the parts.
	Causes []error
	// Waits are what the parts wait for, in the order of the parts. A wait is not an error.
	Waits []W
	// Interrupted says that what comes after must not run: because of an error, a wait, an exit or
	// a requeue.
	Interrupted bool
}

// Join returns the outcome of two parts:
//
//   - every cause and every wait is kept;
//   - Result.Requeue is or-ed;
//   - Result.RequeueAfter is the shorter time, where zero is none and a negative one means at once,
//     so that the next reconcile comes no later than either part asked for;
//   - Result.Priority is the higher one that is set;
//   - one part that interrupts is enough.
//
// Join is associative, and commutative but for the order of causes and waits. The zero value is its
// identity; a negative RequeueAfter comes out as [Immediately]. The operands are not changed. Each
// call copies what there is: join many parts with a [Sum].
func (o Outcome[W]) Join(p Outcome[W]) Outcome[W] {
	return Outcome[W]{
		Result:      joinResults(o.Result, p.Result),
		Causes:      concat(o.Causes, p.Causes),
		Waits:       concat(o.Waits, p.Waits),
		Interrupted: o.Interrupted || p.Interrupted,
	}
}

// Err returns the causes as one error: see [JoinErrors].
func (o Outcome[W]) Err() error { return JoinErrors(o.Causes) }

// concat returns a and b in a slice that shares no free capacity with either.
func concat[E any](a, b []E) []E {
	switch {
	case len(a) == 0:
		return slices.Clip(b)
	case len(b) == 0:
		return slices.Clip(a)
	default:
		return slices.Clip(slices.Concat(a, b))
	}
}
