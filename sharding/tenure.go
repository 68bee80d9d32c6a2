// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ErrExpired is the error of a write after the Lease of the shard has expired or was given back:
// another shard may have the object by then. It is not sent.
var ErrExpired = errors.New("the Lease of the shard has expired")

// A tenure is the time in which a shard holds its Lease, as it knows it itself.
type tenure struct {
	mu    sync.Mutex // for all below
	since time.Time  // before the last renewal was sent; zero before the first, and after the release
	lasts time.Duration
	begun bool
	now   func() time.Time // time.Now, but in tests
}

// renewed notes a renewal that was sent at a time, and was answered.
func (t *tenure) renewed(sent time.Time, lasts time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.lasts, t.begun = sent, lasts, true
}

// end notes that the Lease is being given back.
func (t *tenure) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = time.Time{}
}

// holds reports whether the Lease is held. A process may have been stopped meanwhile, or the machine
// suspended, for which the monotonic clock may have stopped, and the other one may be set: the longer
// time counts.
func (t *tenure) holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		return false
	}
	now := t.now()
	return max(now.Sub(t.since), now.Round(0).Sub(t.since.Round(0))) < t.lasts
}

// hasEnded reports whether the Lease was held, and is not any more.
func (t *tenure) hasEnded() bool {
	t.mu.Lock()
	begun := t.begun
	t.mu.Unlock()
	return begun && !t.holds()
}

// fenced returns a transport that sends no write after the tenure. What is written before it, by what
// needs no Lease, is sent.
func (t *tenure) fenced(next http.RoundTripper) http.RoundTripper { return &fence{t, next} }

type fence struct {
	tenure *tenure
	next   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || !f.tenure.hasEnded() {
		return f.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // the error is that it is not sent
	}
	return nil, fmt.Errorf("%s %s was not sent: %w", r.Method, r.URL.Path, ErrExpired)
}
