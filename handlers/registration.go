// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// A Registration is of handlers that were registered together.
type Registration struct {
	registry *Registry
	entries  []*entry
}

// Stop has the handlers not be called any more, and returns when none of them is running. Other
// handlers of the same kinds notice nothing. A kind of which no handler is left ends with it: its
// workers, its informer and its objects in the cache, unless others use the informer; see
// [NewCache].
//
//   - It may be called at any time, several times, and by a handler of the registration itself:
//     then it does not wait for that call.
//   - The error is that of ctx, if calls have not ended before. They are not called again all the
//     same.
//   - Finalizers stay on the objects: see [Registration.Retire].
func (s *Registration) Stop(ctx context.Context) error {
	r := s.registry
	r.mu.Lock()
	ended := r.removeLocked(s.entries)
	r.mu.Unlock()
	self := runningIn(ctx)
	for _, e := range s.entries {
		if slices.Contains(self, e) {
			continue
		}
		select {
		case <-e.idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if len(self) > 0 {
		return nil // its own kind may be among those that end
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A callContext is the context of a call of a handler.
type callContext struct {
	context.Context
	entry  *entry
	record *track.Record // of what it reads and writes; nil without a journal
}

// runningKey and recordKey are what a callContext is asked by.
type (
	runningKey struct{}
	recordKey  struct{}
)

// Value implements [context.Context].
func (c *callContext) Value(key any) any {
	switch key.(type) {
	case runningKey:
		return c
	case recordKey:
		if c.record != nil {
			return c.record
		}
	}
	return c.Context.Value(key)
}

// runningIn returns the handlers in whose calls the context is used.
func runningIn(ctx context.Context) []*entry {
	var all []*entry
	for c, ok := ctx.Value(runningKey{}).(*callContext); ok; c, ok = c.Context.Value(runningKey{}).(*callContext) {
		all = append(all, c.entry)
	}
	return all
}
