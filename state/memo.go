// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"sync"
)

// A Memo keeps the first successful result of a read. Its zero value is ready for use; it must not
// be copied.
//
// A Memo belongs to one reconcile: it cannot be reset.
type Memo[T any] struct {
	mu sync.Mutex
	// current is guarded by mu. It is nil before the first read, and after a read that failed.
	current *reading[T]
}

// A reading is one call of a read function. Its other fields are written before ended is closed,
// and not after that.
type reading[T any] struct {
	ended chan struct{}
	value T
	err   error
	// abandoned is true when the read ended for a reason of its caller: those that wait for it then
	// read for themselves.
	abandoned bool
}

// Get returns the value, reading it with read if no earlier call has.
//
//   - Of several concurrent callers one calls read, with its own context, and the others wait.
//   - A caller that waits stops when its context is done, and returns the cause.
//   - If read returns an error, Get returns it to all callers that waited, and the next call of Get
//     reads again.
//   - If the context of the caller that reads is done when read fails, or if read panics, the
//     callers that waited read for themselves.
func (m *Memo[T]) Get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	for {
		r, first := m.join()
		if first {
			return m.read(ctx, r, read)
		}
		if err := r.wait(ctx); err != nil {
			var none T
			return none, err
		}
		if !r.abandoned {
			return r.value, r.err
		}
	}
}

// join returns the reading to wait for, or a new one that the caller has to carry out, and reports
// whether it is new.
func (m *Memo[T]) join() (r *reading[T], first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		return m.current, false
	}
	m.current = &reading[T]{ended: make(chan struct{}), abandoned: true}
	return m.current, true
}

// read carries out r. It ends r even if the function that it calls panics or exits the goroutine.
func (m *Memo[T]) read(ctx context.Context, r *reading[T], read func(context.Context) (T, error)) (T, error) {
	defer func() {
		if r.abandoned || r.err != nil {
			m.mu.Lock()
			m.current = nil
			m.mu.Unlock()
		}
		close(r.ended)
	}()

	value, err := read(ctx)
	if err != nil {
		r.err = err
		r.abandoned = ctx.Err() != nil
		return r.value, err
	}
	r.value, r.abandoned = value, false
	return value, nil
}

// wait returns nil when r has ended. If it has ended already, the context does not matter.
func (r *reading[T]) wait(ctx context.Context) error {
	select {
	case <-r.ended:
		return nil
	default:
	}
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
