// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
)

// The exit codes that scripts can rely on.
const (
	exitFound       = 1   // problems were found, or the command failed
	exitUsage       = 2   // wrong usage
	exitOrphans     = 3   // something is orphaned
	exitInterrupted = 130 // SIGINT or SIGTERM ended the command
)

// exitError ends the command with the given exit code. If err is nil, nothing is printed: the
// command has printed its findings.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageMistake is an error of wrong usage whose exit code does not say so.
type usageMistake struct{ err error }

func (m *usageMistake) Error() string { return m.err.Error() }

func (m *usageMistake) Unwrap() error { return m.err }

// ownCodes annotates a command for which code 2 means something else.
const ownCodes = "own-exit-codes"

// exitCode returns the exit code for err.
func exitCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		return exitFound
	}
}
