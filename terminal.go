// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
)

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
	case *outcome.Retried:
		return isSettled(e.Err, settled)
	}
	if isSignal(err) || isTerminal(err) {
		return true
	}
	parts := outcome.Parts(err)
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
		return !isJoin(err) && outcome.IsDropped(err)
	case interface{ Is(error) bool }:
		return e.Is(outcome.Terminal)
	}
	return false
}
