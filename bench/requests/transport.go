// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"net/http"
	"sync"
	"time"
)

// A Transport counts the requests of the client that it is the transport of. Unlike a [Counter] it
// costs no connection, so that an operator can be timed while its requests are counted:
//
//	transport := requests.NewTransport()
//	config.Wrap(transport.Wrap)
type Transport struct {
	mu        sync.Mutex // for all below
	counts    Counts
	conflicts int
	last      time.Time
}

// NewTransport returns a Transport that has counted nothing.
func NewTransport() *Transport {
	return &Transport{counts: newCounts(), last: time.Now()}
}

// Wrap returns a RoundTripper that counts a request and passes it to next. It is meant for
// rest.Config.Wrap, and may be called more than once.
func (t *Transport) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") != "" {
			return next.RoundTrip(r)
		}
		t.request(r)
		response, err := next.RoundTrip(r)
		t.answer(r, response)
		return response, err
	})
}

func (t *Transport) request(r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.add(r)
	t.last = time.Now()
}

// answer counts what was refused. The response is nil if there was none.
func (t *Transport) answer(r *http.Request, response *http.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	if response == nil || response.StatusCode < http.StatusBadRequest || !isWrite(r) {
		return
	}
	t.counts.Refused++
	if response.StatusCode == http.StatusConflict {
		t.conflicts++
	}
}

// Counts returns a copy of the counts since the beginning, and how many of the refused writes were
// conflicts.
func (t *Transport) Counts() (counts Counts, conflicts int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts.clone(), t.conflicts
}

// Quiet returns for how long there has been no request and no answer. Watches do not count.
func (t *Transport) Quiet() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.last)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
