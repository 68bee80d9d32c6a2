// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// An Owner is on whose behalf turns wait: a process.
type Owner struct {
	Name string

	// Guarded by queue.mu:
	dropped     error // what all its turns end with
	pausedUntil time.Time
}

// A Turn waits until it is done.
type Turn struct {
	Ctx   context.Context // the turn ends with its error when it is done before
	Owner *Owner          // nil: the script
	Key   string          // orders turns that began to wait at the same time
	Takes time.Duration   // how long it takes, in virtual time, before it is done

	// Do does it, in the driver. It calls Finish or Hold.
	Do func(*Turn)

	round     uint64    // when it began to wait, in steps of the schedule
	notBefore time.Time // not zero: it was put back
	done      chan error
}

// Finish ends the wait of a turn that is taken.
func (t *Turn) Finish(err error) { t.done <- err }

// Held reports whether the turn was put back before.
func (t *Turn) Held() bool { return !t.notBefore.IsZero() }

func (t *Turn) ownerName() string {
	if t.Owner == nil {
		return "user"
	}
	return t.Owner.Name
}

// queue is what waits.
type queue struct {
	wake chan struct{}

	mu     sync.Mutex // guards what follows, and the owners
	turns  []*Turn
	round  uint64
	closed error
}

// Wait waits until the turn was done, and returns what it was finished with. Any goroutine but the
// driver may call it.
func (q *queue) Wait(t *Turn) error {
	t.done = make(chan error, 1)
	q.mu.Lock()
	err := q.closed
	if err == nil && t.Owner != nil {
		err = t.Owner.dropped
	}
	if err != nil {
		q.mu.Unlock()
		return blockForAWhile(t.Ctx, err)
	}
	t.round = q.round
	q.turns = append(q.turns, t)
	q.mu.Unlock()
	q.Wake()
	select {
	case err := <-t.done:
		return err
	case <-t.Ctx.Done():
		q.remove(t)
		return t.Ctx.Err()
	}
}

// blockForAWhile keeps goroutines of an owner that was dropped from spinning: most of them try
// again at once.
func blockForAWhile(ctx context.Context, err error) error {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return err
}

// Wake ends a sleep of the driver.
func (q *queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Hold puts a turn that is taken back, until a time.
func (q *queue) Hold(t *Turn, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.notBefore = until
	q.turns = append(q.turns, t)
}

// pause holds all turns of the owner of t, and t itself, until a time.
func (q *queue) pause(t *Turn, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.Owner.pausedUntil = until
	q.turns = append(q.turns, t)
	for _, other := range q.turns {
		if other.Owner == t.Owner {
			other.notBefore = until
		}
	}
}

// Paused reports whether an owner stands still.
func (q *queue) Paused(o *Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return o.paused(time.Now())
}

func (o *Owner) paused(now time.Time) bool { return o != nil && now.Before(o.pausedUntil) }

// Drop ends all turns of an owner with an error, those of the future too. It reports whether the
// owner was not dropped before.
func (q *queue) Drop(o *Owner, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o.dropped != nil {
		return false
	}
	o.dropped, o.pausedUntil = err, time.Time{}
	q.finish(err, func(t *Turn) bool { return t.Owner == o })
	return true
}

// Dropped reports whether an owner was dropped, or the schedule closed.
func (q *queue) Dropped(o *Owner) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed != nil || o.dropped != nil
}

// Close ends all turns with an error, those of the future too. It is called after Run.
func (q *queue) Close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = err
	q.finish(err, func(*Turn) bool { return true })
}

// finish ends turns that wait.
func (q *queue) finish(err error, which func(*Turn) bool) {
	q.turns = slices.DeleteFunc(q.turns, func(t *Turn) bool {
		if !which(t) {
			return false
		}
		t.Finish(err)
		return true
	})
}

func (q *queue) newRound() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.round++
}

// remove takes a turn out of the queue, and reports whether it was there.
func (q *queue) remove(t *Turn) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.turns, t)
	if i < 0 {
		return false
	}
	q.turns = slices.Delete(q.turns, i, i+1)
	return true
}

// choose returns one of the turns that can be taken now, or nil.
func (q *queue) choose(now time.Time, pick func(n int) int) *Turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.SortStableFunc(q.turns, func(a, b *Turn) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.ownerName(), b.ownerName()), cmp.Compare(a.Key, b.Key))
	})
	ready := make([]*Turn, 0, len(q.turns))
	for _, t := range q.turns {
		if !t.notBefore.After(now) && !t.Owner.paused(now) {
			ready = append(ready, t)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	return ready[pick(len(ready))]
}

// due returns when the next turn can be taken that is held now.
func (q *queue) due(now time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	var next time.Time
	for _, t := range q.turns {
		if t.notBefore.After(now) {
			next = earlier(next, t.notBefore)
		}
	}
	return next
}
