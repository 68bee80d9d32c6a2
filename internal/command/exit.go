// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
)

// The exit codes that scripts can rely on.
const (
	exitFound       = 1   // problems were found, or something did not work
	exitUsage       = 2   // the command was used wrongly
	exitInterrupted = 130 // SIGINT or SIGTERM ended the command before it was done
)

// exitError ends the command with an exit code of its own. A nil err means that everything was said already: nothing
// more is printed.
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

// exitCode returns the code that err ends the process with.
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
