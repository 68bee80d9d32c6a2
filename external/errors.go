// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import "errors"

// Refused marks an error of Create that says for certain that nothing was created: the system has
// answered so. Without it, it is not known what became of the request.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return &refusedError{err}
}

type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// IsRefused reports whether an error is made by [Refused].
func IsRefused(err error) bool { return errors.As(err, new(*refusedError)) }
