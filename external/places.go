// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit"
)

// places are those in the queue of a system with a rate limit. A call whose turn is too far away
// keeps its place, and is made in a later reconcile: otherwise the calls before it in each
// reconcile would use up what the limit allows, and the last one would never be made.
type places struct {
	limiter *rate.Limiter
	mu      sync.Mutex // for kept
	kept    map[callOf]time.Time
}

// callOf is one call of the resource of an object.
type callOf struct {
	uid  types.UID
	what string
}

func newPlaces(perSecond float64, burst int) *places {
	return &places{limiter: rate.NewLimiter(rate.Limit(perSecond), max(burst, 1)), kept: make(map[callOf]time.Time)}
}

// await waits for the turn of a call, for atMost. The error is a wait if its turn is later.
func (p *places) await(ctx context.Context, call callOf, atMost time.Duration, name string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p == nil:
		return nil
	}
	turn := p.turn(call)
	after := time.Until(turn)
	if after > atMost {
		_, wait := ctrlkit.PollFor("the rate limit of "+name, after)
		return wait
	}
	if after > 0 {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx) // the place is kept
		case <-timer.C:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kept, call)
	return nil
}

// unusedFor is how long a place is kept after its turn. The object may be gone.
const unusedFor = 10 * time.Minute

// turn returns when it is the turn of a call, which takes a place unless it has one.
func (p *places) turn(call callOf) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if turn, ok := p.kept[call]; ok {
		return turn
	}
	now := time.Now()
	for other, turn := range p.kept {
		if now.Sub(turn) > unusedFor {
			delete(p.kept, other)
		}
	}
	turn := now.Add(p.limiter.ReserveN(now, 1).DelayFrom(now))
	p.kept[call] = turn
	return turn
}
