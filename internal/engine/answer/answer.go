// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package answer has what the client of an external system says beside its results: details that the
// system returns only once, and that it has refused to create something. Package external and the
// tests of clients in package ctrlkittest read it.
package answer

import (
	"context"
	"errors"
	"maps"
)

type key struct{}

// Context returns a context in which [Keep] adds to a map.
func Context(ctx context.Context, to map[string][]byte) context.Context {
	return context.WithValue(ctx, key{}, to)
}

// Keep adds details to the map of a context, if it has one.
func Keep(ctx context.Context, details map[string][]byte) {
	if to, ok := ctx.Value(key{}).(map[string][]byte); ok {
		maps.Copy(to, details)
	}
}

// Refused marks an error as the answer that nothing was created.
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
