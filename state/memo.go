// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"sync"
)

// A Memo remembers the first successful result of a read. Its zero value is ready for use; it must not be copied.
//
// A Memo belongs to one reconcile: there is no way to make it forget.
type Memo[T any] struct {
	mu      sync.Mutex
	current *reading[T] // guarded by mu; nil when nothing was read yet, or the last read did not succeed
}

// A reading is one call of a read function. Its other fields are written before ended is closed, and not after that.
type reading[T any] struct {
	ended     chan struct{}
	value     T
	err       error
	abandoned bool // the reader gave up for a reason of its own: whoever waits reads for itself
}

// Get returns the remembered value, or calls read and remembers what it returns.
//
// Of several callers at once one reads, with its own context, and the others wait. A waiter whose context ends stops
// waiting. If read returns an error, all who waited for it get that error, and the next call of Get reads again;
// but if the reader's own context had ended, or read panicked, those who waited read for themselves.
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

// join returns the reading to wait for, or a new one that the caller has to carry out.
func (m *Memo[T]) join() (r *reading[T], first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current != nil {
		return m.current, false
	}
	m.current = &reading[T]{ended: make(chan struct{}), abandoned: true}
	return m.current, true
}

// read carries out r. It ends r also when the function that it calls panics or ends the goroutine.
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

// wait returns nil when r has ended. What is there already is also given to a caller whose context has ended.
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
