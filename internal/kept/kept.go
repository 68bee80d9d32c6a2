// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package kept carries details that an external system returns only once from a call of its client to
// the caller: package external, and the tests of clients in package ctrlkittest.
package kept

import (
	"context"
	"maps"
)

type key struct{}

// Context returns a context in which [Add] adds to a map.
func Context(ctx context.Context, to map[string][]byte) context.Context {
	return context.WithValue(ctx, key{}, to)
}

// Add adds details to the map of a context, if it has one.
func Add(ctx context.Context, details map[string][]byte) {
	if to, ok := ctx.Value(key{}).(map[string][]byte); ok {
		maps.Copy(to, details)
	}
}
