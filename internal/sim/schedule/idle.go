// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"time"
)

// ErrNotIdle is what a wait ends with whose patience has ended.
var ErrNotIdle = errors.New("not idle in time")

// idleness measures whether everything is idle: nothing has happened for the quiet time, and
// nothing is due.
type idleness struct {
	quiet   time.Duration
	least   time.Duration // what quiet was at the beginning
	backoff time.Duration
	since   time.Time // when something happened last
	waiting *waiter
	heals   []func()
}

// waiter is a wait for idleness.
type waiter struct {
	since    time.Time
	patience time.Duration
	done     func(error)
}

// Active notes that something happened by which idleness is measured.
func (i *idleness) Active() { i.since = time.Now() }

// Quiet returns how long nothing may have happened until everything is idle.
func (i *idleness) Quiet() time.Duration { return i.quiet }

// SlowDown makes the quiet time longer after something has failed for so long: a process that backs
// off exponentially tries again only after as long a time.
func (i *idleness) SlowDown(failed time.Duration) {
	i.quiet = max(i.quiet, 2*failed+i.least, i.backoff)
}

// WhenIdle does something once everything is idle and a caller of NotifyIdle waits. The wait ends
// when everything is idle again after it.
func (i *idleness) WhenIdle(do func()) { i.heals = append(i.heals, do) }

// NotifyIdle calls done with nil when everything is idle, or with ErrNotIdle when it is not within
// patience.
func (i *idleness) NotifyIdle(patience time.Duration, done func(error)) {
	i.waiting = &waiter{time.Now(), patience, done}
}

// CancelIdle ends the wait that NotifyIdle has begun, if any, with an error.
func (i *idleness) CancelIdle(err error) {
	if waiting := i.waiting; waiting != nil {
		i.waiting = nil
		waiting.done(err)
	}
}

// becomeIdle heals or ends the wait for idleness if it is time to, and reports whether it did
// something.
func (i *idleness) becomeIdle(pending bool) bool {
	if i.waiting == nil {
		return false
	}
	switch now := time.Now(); {
	case now.Sub(i.waiting.since) > i.waiting.patience:
		i.CancelIdle(ErrNotIdle)
	case pending || now.Before(i.since.Add(i.quiet)):
		return false
	case len(i.heals) > 0:
		heals := i.heals
		i.heals = nil
		for _, heal := range heals {
			heal()
		}
		i.Active()
	default:
		i.CancelIdle(nil)
	}
	return true
}

// due returns when everything can be idle. When that has passed, a timer is still due.
func (i *idleness) due(now time.Time) time.Time {
	if at := i.since.Add(i.quiet); i.waiting != nil && at.After(now) {
		return at
	}
	return time.Time{}
}
