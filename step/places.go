// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"sync"
)

// mostAtOnce is how many steps of one object run at the same time.
const mostAtOnce = 16

// places let steps of groups run at the same time, in one reconcile:
//
//   - They limit how many do.
//   - Steps begin in the order in which they were given, so that the journal has them in that
//     order.
//   - No step runs while the finalizer is written, which changes the object that they all see.
//
// Nil places let everything pass.
type places struct {
	begun  []begun // of each part
	free   chan struct{}
	object sync.RWMutex // held for reading by each step of a group while it runs, for writing while the finalizer is written
}

// begun is done when a part has begun.
type begun struct {
	once sync.Once
	done chan struct{}
}

func newPlaces(parts int) *places {
	p := &places{begun: make([]begun, parts), free: make(chan struct{}, mostAtOnce)}
	for i := range p.begun {
		p.begun[i].done = make(chan struct{})
	}
	return p
}

// begin notes that a part has begun, or will not.
func (p *places) begin(part int) {
	if p != nil {
		p.begun[part].once.Do(func() { close(p.begun[part].done) })
	}
}

// A place belongs to a step of a group that runs. It is in the context of the step.
type place struct {
	places *places
	mu     sync.Mutex // one goroutine of the step gives the place up at a time
}

type placeKey struct{}

// exclusively calls call, which reads or writes all of the object, while no other step of a group
// runs.
func exclusively(ctx context.Context, call func() error) error {
	p, _ := ctx.Value(placeKey{}).(*place)
	if p == nil {
		return call()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places.object.RUnlock()
	defer p.places.object.RLock()
	p.places.object.Lock()
	defer p.places.object.Unlock()
	return call()
}

// enter waits until the part before has begun, and for a place, which leave gives back. An error is
// the cause of a context that is done.
func (p *places) enter(ctx context.Context, after int) (leave func(), err error) {
	if after >= 0 {
		select {
		case <-p.begun[after].done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case p.free <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.object.RLock()
	return func() {
		p.object.RUnlock()
		<-p.free
	}, nil
}
