// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
)

// Signals travel as errors because they interrupt as errors do; IgnoreExit takes them out at the
// root.

// waitSignal is what Wait and Poll return.
type waitSignal struct {
	what  string
	every time.Duration
}

func (w *waitSignal) Error() string        { return "waiting for " + w.what }
func (w *waitSignal) Is(target error) bool { return target == ErrExit }

// A requeueSignal is a result that travels as an error.
type requeueSignal struct {
	result     ctrl.Result
	interrupts bool
}

func (r *requeueSignal) Error() string {
	if r.interrupts {
		return "requeue"
	}
	return "continue, and requeue"
}

func isRequeue(err error) bool {
	_, ok := err.(*requeueSignal) //nolint:errorlint // not what it wraps
	return ok
}

// errContinue marks a result that asks for another reconcile without interrupting anything.
var errContinue error = &requeueSignal{}

// lift returns an outcome with all times that are in err in the result, too, and without the errors
// that say nothing else. All that is left of [RequeueWithin] is errContinue, where nothing
// interrupts.
func lift(result ctrl.Result, err error) (ctrl.Result, error) {
	if err == nil {
		return result, nil
	}
	requeues, interrupting := false, false
	var sum outcome.Sum[struct{}]
	sum.Add(outcome.Outcome[struct{}]{Result: result})
	walk(err, "", func(_ string, e error) {
		switch s := e.(type) { //nolint:errorlint // walk visits every error of the tree
		case *requeueSignal:
			requeues, interrupting = true, interrupting || s.interrupts
			sum.Add(outcome.Outcome[struct{}]{Result: s.result})
		case *waitSignal:
			sum.Add(outcome.Outcome[struct{}]{Result: ctrl.Result{RequeueAfter: s.every}})
		}
	})
	if requeues {
		if err, _ = without(err, isRequeue); err == nil && !interrupting {
			err = errContinue
		}
	}
	return sum.Outcome().Result, err
}

// A Waiting is one thing that a workflow waits for.
type Waiting struct {
	// Action is the description of the action that waits; empty if the wait came from elsewhere.
	Action string
	// For is what it waits for.
	For string
	// Every is how often the request is reconciled to check again; zero when a watch ends the wait.
	Every time.Duration
}

// Waits returns what a workflow that returned err waits for, in the order of the workflow, each
// wait once. Call it before [IgnoreExit], which takes waits out.
func Waits(err error) []Waiting {
	var waits []Waiting
	seen := map[*waitSignal]bool{} // a Once returns its wait in several places
	walk(err, "", func(action string, e error) {
		if w, ok := e.(*waitSignal); ok && !seen[w] { //nolint:errorlint // walk visits every error of the tree
			seen[w] = true
			waits = append(waits, Waiting{Action: action, For: w.what, Every: w.every})
		}
	})
	return waits
}

// A BlockedError reports that an action of a [Graph] was not run because others, which it comes
// after, did not pass. It is not a failure of its own: the cause is reported beside it, and
// [IgnoreExit] takes it out.
type BlockedError struct {
	// Action is the description of the action that was not run.
	Action string
	// By are the descriptions of the actions that failed, waited or asked to be run again, in the
	// order of the graph. An action that was itself blocked does not appear: the ones that blocked
	// it do. It is shared with other errors, and must not be changed.
	By []string
}

// mostBlockers is how many blockers the text of a [BlockedError] names.
const mostBlockers = 10

// Error names the action and the first ten of what blocks it.
func (b *BlockedError) Error() string {
	text := b.Action + " is blocked by " + strings.Join(b.By[:min(len(b.By), mostBlockers)], ", ")
	if more := len(b.By) - mostBlockers; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Is reports a blocked action as an exit: it interrupts and is not a failure.
func (b *BlockedError) Is(target error) bool { return target == ErrExit }

// BlockedActions returns the blocked actions of a workflow that returned err, each once. Call it
// before [IgnoreExit], which takes them out.
func BlockedActions(err error) []*BlockedError {
	var blocked []*BlockedError
	seen := map[*BlockedError]bool{} // a Once returns its error in several places
	walk(err, "", func(_ string, e error) {
		if b, ok := e.(*BlockedError); ok && !seen[b] { //nolint:errorlint // walk visits every error of the tree
			seen[b] = true
			blocked = append(blocked, b)
		}
	})
	return blocked
}

// walk calls visit for every error in the tree of err, with the innermost action that it came out
// of.
func walk(err error, action string, visit func(action string, err error)) {
	if err == nil {
		return
	}
	if a, ok := err.(*ActionError); ok { //nolint:errorlint // the tree is walked node by node
		action = a.Action
	}
	visit(action, err)
	for _, part := range outcome.Parts(err) {
		walk(part, action, visit)
	}
}

// isJoin reports whether err is nothing but a list of errors without words of its own: one that
// this package or errors.Join made. Only such a list may be taken apart. Another error that wraps
// several, such as fmt.Errorf with more than one %w, is one failure with one text.
func isJoin(err error) bool {
	if _, ok := err.(*outcome.Causes); ok { //nolint:errorlint // not what it wraps
		return true
	}
	return reflect.TypeOf(err) == joinType
}

var joinType = reflect.TypeOf(errors.Join(ErrExit))

// isSignal reports whether err, not what it wraps, is an exit, a wait, a blocked action or
// a requeue.
func isSignal(err error) bool {
	switch err.(type) { //nolint:errorlint // not what it wraps
	case *waitSignal, *BlockedError, *requeueSignal:
		return true
	case interface{ Unwrap() error }, interface{ Unwrap() []error }, utilerrors.Aggregate:
		return false // its Is may speak for a part
	}
	if err == ErrExit { //nolint:errorlint // without walks the tree
		return true
	}
	is, ok := err.(interface{ Is(error) bool })
	return ok && is.Is(ErrExit)
}

func withoutSignals(err error) error {
	rest, _ := without(err, isSignal)
	return rest
}

// without returns err without the errors that drop is true for, and whether it dropped any. Lists
// (see isJoin) lose only those. An error that wraps nothing else is dropped with what it wraps; one
// that wraps both is kept whole, with every cause and its text.
func without(err error, drop func(error) bool) (rest error, changed bool) {
	if err == nil {
		return nil, false
	}
	if drop(err) {
		return nil, true
	}
	switch e := err.(type) { //nolint:errorlint // the tree is walked node by node
	case *ActionError:
		return withoutInner(err, e.Err, drop, func(inner error) error { return &ActionError{Action: e.Action, Err: inner} })
	case *outcome.Retried:
		return withoutInner(err, e.Err, drop, func(inner error) error { return &outcome.Retried{Err: inner} })
	case *sharedError:
		return withoutInner(err, e.err, drop, func(inner error) error { return &sharedError{inner} })
	}
	if isJoin(err) {
		return withoutCauses(err, outcome.Parts(err), drop)
	}
	parts := outcome.Parts(err)
	for _, part := range parts {
		if rest, _ := without(part, drop); rest != nil {
			return err, false
		}
	}
	if len(parts) > 0 {
		return nil, true
	}
	return err, false
}

// withoutInner is without for an error of this package that says something about one other.
func withoutInner(err, inner error, drop func(error) bool, around func(error) error) (error, bool) {
	inner, changed := without(inner, drop)
	switch {
	case !changed:
		return err, false
	case inner == nil:
		return nil, true
	default:
		return around(inner), true
	}
}

func withoutCauses(err error, all []error, drop func(error) bool) (error, bool) {
	var kept []error
	changed := false
	for _, cause := range all {
		rest, dropped := without(cause, drop)
		changed = changed || dropped
		if rest != nil {
			kept = append(kept, rest)
		}
	}
	if !changed {
		return err, false
	}
	return outcome.JoinErrors(kept), true
}

// An ActionError is the error of one action.
type ActionError struct {
	// Action is the description of the action.
	Action string
	// Err is what it returned.
	Err error
}

func (e *ActionError) Error() string { return e.Action + ": " + e.Err.Error() }

// Unwrap returns what the action returned.
func (e *ActionError) Unwrap() error { return e.Err }
