// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"reflect"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// controller-runtime drops a request if the error of its reconcile wraps a terminal one anywhere.
// That is right only where nothing else asks for another reconcile, so the mark of a terminal error
// is hidden where something does.

// Terminal is the error by which controller-runtime recognizes a terminal one.
var Terminal = reconcile.TerminalError(nil)

// IsDropped reports whether controller-runtime would drop a request because of err.
func IsDropped(err error) bool { return errors.Is(err, Terminal) }

// HideTerminal returns err so that controller-runtime does not drop the request because of it.
func HideTerminal(err error) error {
	if !IsDropped(err) {
		return err
	}
	list, ok := err.(*Causes) //nolint:errorlint // only a list as such is taken apart
	if !ok {
		return &Retried{err}
	}
	causes := CausesOf(list)
	hidden := make([]error, len(causes))
	for i, cause := range causes {
		hidden[i] = HideTerminal(cause)
	}
	return JoinErrors(hidden)
}

// Retried is an error that wraps a terminal one and is not found to be terminal. It is that error
// in everything else.
//
// It is an aggregate of one, and has no Unwrap, which errors.Is would follow: code that takes
// errors apart to classify them, as package failure does, still finds the terminal one.
type Retried struct{ Err error }

var _ utilerrors.Aggregate = (*Retried)(nil)

func (r *Retried) Error() string { return r.Err.Error() }

// Errors implements [utilerrors.Aggregate].
func (r *Retried) Errors() []error { return []error{r.Err} }

// As sees through.
func (r *Retried) As(target any) bool { return errors.As(r.Err, target) }

// Is sees through, but for the question whether the error is terminal. Whether it is a certain
// terminal error is answered.
func (r *Retried) Is(target error) bool {
	if !errors.Is(Terminal, target) {
		return errors.Is(r.Err, target)
	}
	return reflect.TypeOf(target).Comparable() && contains(r.Err, target)
}

// contains reports whether an error is in the tree of another one.
func contains(err, target error) bool {
	if err == target { //nolint:errorlint // every error of the tree is compared
		return true
	}
	return slices.ContainsFunc(Parts(err), func(part error) bool { return contains(part, target) })
}

// Parts returns what err wraps, nil if it wraps nothing.
func Parts(err error) []error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked node by node
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return slices.DeleteFunc(slices.Clone(e.Unwrap()), func(part error) bool { return part == nil })
	case utilerrors.Aggregate:
		return e.Errors()
	}
	return nil
}
