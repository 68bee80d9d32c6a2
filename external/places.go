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
	most    rate.Limit // the rate that the operator allows

	mu     sync.Mutex // for all below
	kept   map[callOf]time.Time
	second time.Time // in which the answers are counted
	now    int       // answers in this second
	before int       // in the one before it
	asked  time.Time // when the system has last asked for fewer calls
}

// callOf is one call of the resource of an object.
type callOf struct {
	uid  types.UID
	what string
}

// newPlaces returns places for so many calls in a second, without a limit if it is zero.
func newPlaces(perSecond float64, burst int) *places {
	most := rate.Limit(perSecond)
	if most <= 0 {
		most = rate.Inf
	}
	return &places{limiter: rate.NewLimiter(most, max(burst, 1)), most: most, kept: make(map[callOf]time.Time)}
}

// How the rate follows what a system takes: it falls below what was answered in the last second, and
// rises while nothing is refused.
const (
	below = 0.95
	above = 1.03
)

// slow lowers the rate, because the system has asked for fewer calls: once in a second, because the
// calls that were made before it has an effect are refused as well.
func (p *places) slow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick()
	now := time.Now()
	if now.Sub(p.asked) < time.Second {
		return
	}
	p.asked = now
	p.limiter.SetLimitAt(now, min(p.most, rate.Limit(max(1, below*float64(max(p.now, p.before))))))
}

// answered counts an answer, and raises the rate if it is lower than the operator allows.
func (p *places) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tick()
	if p.now++; p.now > 1 || p.limiter.Limit() >= p.most || time.Since(p.asked) < 2*time.Second {
		return
	}
	p.limiter.SetLimit(min(p.most, above*p.limiter.Limit()))
}

// tick begins another second.
func (p *places) tick() {
	switch now := time.Now(); {
	case now.Sub(p.second) >= 2*time.Second:
		p.second, p.now, p.before = now, 0, 0
	case now.Sub(p.second) >= time.Second:
		p.second, p.now, p.before = p.second.Add(time.Second), 0, p.now
	}
}

// later returns a wait for the next turn of a call that was refused, after some time at least.
func (p *places) later(call callOf, after time.Duration, name string) error {
	turn := p.turn(call)
	if earliest := time.Now().Add(after); turn.Before(earliest) {
		p.mu.Lock()
		p.kept[call] = earliest
		p.mu.Unlock()
		turn = earliest
	}
	return ctrlkit.Poll("the rate limit of "+name, max(time.Until(turn), time.Millisecond))
}

// await waits for the turn of a call, for atMost. The error is a wait if its turn is later.
func (p *places) await(ctx context.Context, call callOf, atMost time.Duration, name string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	turn := p.turn(call)
	after := time.Until(turn)
	if after > atMost {
		return ctrlkit.Poll("the rate limit of "+name, after)
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
