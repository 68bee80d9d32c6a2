// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"errors"
	"reflect"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/outcome"
)

// controller-runtime drops a request if the error of its reconcile wraps a terminal one anywhere.
// That is right only where nothing else asks for another reconcile, so the mark of a terminal error
// is hidden where something does.

// terminal is the error by which controller-runtime recognizes a terminal one.
var terminal = reconcile.TerminalError(nil)

// isDropped reports whether controller-runtime would drop a request because of err.
func isDropped(err error) bool { return errors.Is(err, terminal) }

// isSettled reports whether err asks for no other reconcile: all its causes are terminal, exits,
// blocked by others, or settled is true for them. A wait is not settled: what it waits for will
// change. settled may be nil.
func isSettled(err error, settled func(error) bool) bool {
	if err == nil || settled != nil && settled(err) {
		return true
	}
	switch e := err.(type) { //nolint:errorlint // the tree is walked node by node
	case *waitSignal, *TimeoutError:
		return false
	case *retried:
		return isSettled(e.err, settled)
	}
	if isSignal(err) || isTerminal(err) {
		return true
	}
	parts := partsOf(err)
	for _, part := range parts {
		if !isSettled(part, settled) {
			return false
		}
	}
	return len(parts) > 0
}

// isTerminal reports whether err itself is marked terminal. An error in words that wraps
// several (see isJoin) is one failure, and terminal if one of its parts is.
func isTerminal(err error) bool {
	switch e := err.(type) { //nolint:errorlint // not what it wraps
	case *outcome.Causes, utilerrors.Aggregate:
		return false
	case interface{ Unwrap() []error }:
		return !isJoin(err) && isDropped(err)
	case interface{ Is(error) bool }:
		return e.Is(terminal)
	}
	return false
}

// hideTerminal returns err so that controller-runtime does not drop the request because of it.
func hideTerminal(err error) error {
	if !isDropped(err) {
		return err
	}
	list, ok := err.(*outcome.Causes) //nolint:errorlint // only a list as such is taken apart
	if !ok {
		return &retried{err}
	}
	causes := outcome.CausesOf(list)
	hidden := make([]error, len(causes))
	for i, cause := range causes {
		hidden[i] = hideTerminal(cause)
	}
	return outcome.JoinErrors(hidden)
}

// retried is an error that wraps a terminal one and is not found to be terminal. It is that error
// in everything else.
//
// It is an aggregate of one, and has no Unwrap, which errors.Is would follow: code that takes
// errors apart to classify them, as package failure does, still finds the terminal one.
type retried struct{ err error }

var _ utilerrors.Aggregate = (*retried)(nil)

func (r *retried) Error() string   { return r.err.Error() }
func (r *retried) Errors() []error { return []error{r.err} }

// As sees through.
func (r *retried) As(target any) bool { return errors.As(r.err, target) }

// Is sees through, but for the question whether the error is terminal. Whether it is a certain
// terminal error is answered.
func (r *retried) Is(target error) bool {
	if !errors.Is(terminal, target) {
		return errors.Is(r.err, target)
	}
	found := false
	walk(r.err, "", func(_ string, err error) {
		found = found || reflect.TypeOf(target).Comparable() && err == target //nolint:errorlint // walk visits every error of the tree
	})
	return found
}
