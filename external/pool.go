// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var _ manager.Runnable = (*Pool[any])(nil)

// A Pool shares connections to external systems among objects with the same credentials. A
// connection is closed when the credentials of its system change, as soon as nothing uses it any
// more. The zero value is empty; it is safe for concurrent use.
//
// A manager that has it as a Runnable closes all connections when it stops:
//
//	err := mgr.Add(pool)
type Pool[C any] struct {
	// Close closes a connection. It may be nil.
	Close func(C) error

	mu    sync.Mutex // for all below
	all   map[string]*shared[C]
	ended bool // closeAll was called
}

// shared is one connection.
type shared[C any] struct {
	version string
	ready   chan struct{} // closed when it is dialed
	conn    C
	err     error
	// abandoned says that the context of the call which dialed has ended.
	abandoned bool
	users     int
	old       bool // it is closed when nothing uses it
}

// A Lease is the use of a connection. Release ends it.
type Lease[C any] struct {
	Conn    C
	Release func() error
}

// Get returns the connection for a key, such as the address of a system, and dials it if there is
// none with these credentials. Version is another text when the credentials change: the UID and
// the resource version of their Secret. An error of dial is not kept.
//
// When the operator ends, the error is a context.Canceled.
//
// Calls of Get for the same key wait for one dial, as long as their contexts allow. If the context
// of the one that dials ends, another one dials.
func (p *Pool[C]) Get(ctx context.Context, key, version string, dial func(ctx context.Context) (C, error)) (Lease[C], error) {
	for {
		use := dialingOf(ctx)
		use.use(key)
		s, first, stale := p.take(key, version)
		if s == nil {
			return Lease[C]{}, errPoolClosed
		}
		if stale != nil {
			if err := p.end(stale); err != nil { // nothing uses it
				return Lease[C]{}, p.giveUp(key, s, fmt.Errorf("closing the connection with the previous credentials: %w", err))
			}
		}
		if first {
			p.dial(ctx, key, s, func(ctx context.Context) (conn C, err error) {
				err = use.allow(func() (err error) {
					conn, err = dial(ctx)
					return err
				})
				return conn, err
			})
		} else if err := s.await(ctx); err != nil {
			return Lease[C]{}, p.release(s, err)
		}
		switch {
		case s.err == nil:
			return Lease[C]{Conn: s.conn, Release: sync.OnceValue(func() error { return p.release(s, nil) })}, nil
		case first || !s.abandoned:
			return Lease[C]{}, s.err
		}
	}
}

// errPoolClosed is the error of Pool.Get when the operator ends.
var errPoolClosed = fmt.Errorf("the connections are closed, because the operator ends: %w", context.Canceled)

// Start implements [manager.Runnable]: it closes the connections when ctx is done. Each is closed when
// its last use ends.
func (p *Pool[C]) Start(ctx context.Context) error {
	<-ctx.Done()
	return p.closeAll()
}

// closeAll closes all connections, those that are used as soon as nothing uses them any more, and
// returns the errors of those that were not used.
func (p *Pool[C]) closeAll() error {
	p.mu.Lock()
	p.ended = true
	var unused []*shared[C]
	for key, s := range p.all {
		delete(p.all, key)
		if s.old = true; s.users == 0 {
			unused = append(unused, s)
		}
	}
	p.mu.Unlock()
	var all []error
	for _, s := range unused {
		all = append(all, p.end(s))
	}
	return errors.Join(all...)
}

// await waits until a connection is dialed.
func (s *shared[C]) await(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errDialPanicked is what those receive who wait for a dial that panics.
var errDialPanicked = errors.New("the dial of the connection has panicked")

// dial makes a connection for all who wait for it.
func (p *Pool[C]) dial(ctx context.Context, key string, s *shared[C], dial func(ctx context.Context) (C, error)) {
	s.err = errDialPanicked
	defer func() {
		if s.err != nil {
			s.abandoned = ctx.Err() != nil
			p.drop(key, s)
		}
		close(s.ready)
	}()
	s.conn, s.err = dial(ctx)
}

// take returns the connection for a key, whether the caller has to dial it, and one that has to be
// closed.
func (p *Pool[C]) take(key, version string) (s *shared[C], first bool, stale *shared[C]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, false, nil
	}
	if p.all == nil {
		p.all = make(map[string]*shared[C])
	}
	s = p.all[key]
	if s != nil && s.version == version {
		s.users++
		return s, false, nil
	}
	if s != nil {
		if s.old = true; s.users == 0 {
			stale = s
		}
	}
	s = &shared[C]{version: version, ready: make(chan struct{}), users: 1}
	p.all[key] = s
	return s, true, stale
}

// release ends a use, and closes a connection that is old.
func (p *Pool[C]) release(s *shared[C], cause error) error {
	p.mu.Lock()
	s.users--
	last := s.old && s.users == 0
	p.mu.Unlock()
	if !last {
		return cause
	}
	if err := p.end(s); cause == nil {
		return err
	}
	return cause
}

// end closes a connection.
func (p *Pool[C]) end(s *shared[C]) error {
	if p.Close == nil || s.err != nil {
		return nil
	}
	return p.Close(s.conn)
}

// drop forgets a connection that could not be dialed.
func (p *Pool[C]) drop(key string, s *shared[C]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[key] == s {
		delete(p.all, key)
	}
}

// giveUp ends a use that could not begin.
func (p *Pool[C]) giveUp(key string, s *shared[C], err error) error {
	s.err = err
	p.drop(key, s)
	close(s.ready)
	return err
}
