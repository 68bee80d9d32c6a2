// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"sync"
)

// mostAtOnce is how many steps of one object run at the same time.
const mostAtOnce = 16

// A gate lets steps of groups run at the same time, in one reconcile. It bounds how many do, lets
// them begin in the order in which they were given, so that the journal tells them in that order,
// and keeps them apart from the write of the finalizer, which changes the object that they all see.
// A nil gate lets everything pass.
type gate struct {
	begun  []begun // of each part
	places chan struct{}
	object sync.RWMutex // held for reading by each step of a group while it runs, for writing while the finalizer is written
}

// begun is done when a part has begun.
type begun struct {
	once sync.Once
	done chan struct{}
}

func newGate(parts int) *gate {
	g := &gate{begun: make([]begun, parts), places: make(chan struct{}, mostAtOnce)}
	for i := range g.begun {
		g.begun[i].done = make(chan struct{})
	}
	return g
}

// begin says that a part has begun, or will not.
func (g *gate) begin(part int) {
	if g != nil {
		g.begun[part].once.Do(func() { close(g.begun[part].done) })
	}
}

// A place is that of a step of a group which runs, in the context of the step.
type place struct {
	gate *gate
	mu   sync.Mutex // one goroutine of the step gives the place up at a time
}

type placeKey struct{}

// exclusively calls what reads or writes all of the object while no other step of a group runs.
func exclusively(ctx context.Context, call func() error) error {
	p, _ := ctx.Value(placeKey{}).(*place)
	if p == nil {
		return call()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate.object.RUnlock()
	defer p.gate.object.RLock()
	p.gate.object.Lock()
	defer p.gate.object.Unlock()
	return call()
}

// enter waits until the part before has begun, and for a place. Leave ends what it begins. An error
// is the cause of a context that is done.
func (g *gate) enter(ctx context.Context, after int) (leave func(), err error) {
	if after >= 0 {
		select {
		case <-g.begun[after].done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	select {
	case g.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	g.object.RLock()
	return func() {
		g.object.RUnlock()
		<-g.places
	}, nil
}

// complete gives a request what the engine knows.
func (r *Request[T]) complete(p *plan[T], owner, finalizer string) {
	r.owner, r.finalizer = owner, finalizer
	if p.groups {
		r.gate = newGate(len(p.parts))
	}
}

// guard puts the finalizer on the object before a step, one of a group only while no other step
// runs.
func (r *Request[T]) guard(ctx context.Context, p *part[T]) error {
	switch {
	case r.protect == nil:
		return nil
	case !p.grouped:
		return r.protect(ctx)
	case slices.Contains(r.snapshot.GetFinalizers(), r.finalizer):
		return nil
	}
	return exclusively(ctx, func() error { return r.protect(ctx) })
}
