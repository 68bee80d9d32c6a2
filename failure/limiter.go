// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// A Limiter is the rate limiter of a controller's queue that delays each request as the
// classification of its latest failure says. Pass it to the controller as
// controller.Options.RateLimiter; package step does. It limits each request by itself: one that
// fails never delays others.
type Limiter[K comparable] struct {
	mu    sync.Mutex // for tries
	tries map[K]try
}

type try struct {
	failures int
	delay    time.Duration
	unread   int // failures whose delay the queue has not asked for; if it asks when there are none, something failed without a call of Failed
}

// NewLimiter returns a limiter without failures.
func NewLimiter[K comparable]() *Limiter[K] { return &Limiter[K]{tries: make(map[K]try)} }

// Failed records a failure of a request, and returns how many there were in a row and how long the
// next try waits.
func (l *Limiter[K]) Failed(key K, c Classification) (failures int, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.failed(key, c)
	return t.failures, t.delay
}

func (l *Limiter[K]) failed(key K, c Classification) try {
	t := l.tries[key]
	t.failures++
	t.unread++
	t.delay = c.RetryAfter
	if t.delay <= 0 {
		t.delay = c.Backoff.Delay(t.failures)
	}
	l.tries[key] = t
	return t
}

// When returns how long the next try of a request waits. The queue calls it once for each failure.
// A failure that was not recorded with Failed counts as [ClassTransient].
func (l *Limiter[K]) When(key K) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tries[key]
	if t.unread == 0 {
		t = l.failed(key, Classification{Backoff: rows[ClassTransient].backoff})
	}
	t.unread--
	l.tries[key] = t
	return t.delay
}

// AtMost shortens how long the next try of a request waits after a failure that was recorded with
// Failed. It returns how long that is now.
func (l *Limiter[K]) AtMost(key K, delay time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tries[key]
	if t.unread > 0 && t.delay > delay {
		t.delay = delay
		l.tries[key] = t
	}
	return t.delay
}

// Forget forgets the failures of a request: it succeeded. The queue calls it.
func (l *Limiter[K]) Forget(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tries, key)
}

// NumRequeues returns how often a request has failed in a row.
func (l *Limiter[K]) NumRequeues(key K) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries[key].failures
}

var _ workqueue.TypedRateLimiter[string] = (*Limiter[string])(nil)
