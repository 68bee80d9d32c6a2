package failure

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// A Limiter is the rate limiter of a controller's queue that waits as long as the verdict about the latest failure of a request says. Give it to the
// controller as controller.Options.RateLimiter; package step does. It limits each request by itself: one that fails never delays others.
type Limiter[K comparable] struct {
	mu    sync.Mutex // for tries
	tries map[K]try
}

type try struct {
	failures int
	delay    time.Duration
}

// NewLimiter returns a limiter that knows of no failure.
func NewLimiter[K comparable]() *Limiter[K] { return &Limiter[K]{tries: make(map[K]try)} }

// Failed notes a failure of a request, and returns how many there were in a row and how long the next try waits.
func (l *Limiter[K]) Failed(key K, v Verdict) (failures int, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tries[key]
	t.failures++
	t.delay = v.RetryAfter
	if t.delay <= 0 {
		t.delay = v.Backoff.Delay(t.failures)
	}
	l.tries[key] = t
	return t.failures, t.delay
}

// When returns how long the next try of a request waits. The queue asks.
func (l *Limiter[K]) When(key K) time.Duration {
	l.mu.Lock()
	t, ok := l.tries[key]
	l.mu.Unlock()
	if !ok { // something failed before it could be judged
		_, delay := l.Failed(key, Verdict{Backoff: rows[Transient].backoff})
		return delay
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
