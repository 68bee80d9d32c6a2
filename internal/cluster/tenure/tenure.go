// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package tenure knows until when a process holds its Lease, that of a leader or of a shard, and
// keeps it from doing anything after that.
//
// A process that is stopped for longer than its Lease, and resumed, has a successor. Leader election
// notices that some seconds later. A tenure knows it at once, without asking: by the clock of the
// process, counted from when the last renewal was sent, which is before anyone can have read it. It
// is asked before each action, before each call of an external system, and before each request that
// writes, and the contexts of those that run end with it.
//
//   - While a process is stopped (SIGSTOP, a frozen cgroup), the monotonic clock continues.
//   - While the machine is suspended, that clock stands still on Linux, and the wall clock is right
//     again when it continues. So the longer time of both counts.
//   - A virtual machine that is frozen with both clocks knows nothing of it until its wall clock is
//     set. No clock of the process shows that.
//   - What was sent before the end may arrive after it.
//
// A wall clock that is set forward by more than the Lease ends the tenure until the next renewal.
package tenure

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ErrExpired is the error of what was not done, or was canceled, because the process does not hold
// its Lease any more. Errors.Is finds context.Canceled in it, too: nothing has failed.
var ErrExpired error = expired{}

// RequeueAfter is when a reconcile is tried again that did not begin because the Lease has expired: if
// it is renewed after all, nothing is missing.
const RequeueAfter = time.Second

type expired struct{}

func (expired) Error() string { return "the Lease of this process has expired" }
func (expired) Unwrap() error { return context.Canceled }

// A Tenure is the time in which a process holds its Lease. It begins with the first renewal. The
// zero value is ready to use, and safe for concurrent use.
type Tenure struct {
	mu    sync.Mutex // for all below
	since time.Time  // before the last renewal was sent; zero before the first, and after the release
	lasts time.Duration
	term  context.Context // done when the Lease has expired; nil before the first renewal
	end   context.CancelCauseFunc
	timer *time.Timer
}

// Renew notes a renewal that was sent at a time, and was answered.
func (t *Tenure) Renew(sent time.Time, lasts time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.lasts = sent, lasts
	if !t.holds() {
		return
	}
	if t.term == nil || t.term.Err() != nil {
		t.term, t.end = context.WithCancelCause(context.Background())
	}
	t.stopTimer()
	t.timer = time.AfterFunc(time.Until(sent.Add(lasts)), t.expire)
}

// expire ends what runs, unless the Lease was renewed meanwhile.
func (t *Tenure) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holds() && t.end != nil {
		t.end(ErrExpired)
	}
}

// Release notes that the Lease is being given back.
func (t *Tenure) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = time.Time{}
	t.stopTimer()
	if t.end != nil {
		t.end(ErrExpired)
	}
}

func (t *Tenure) stopTimer() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Holds reports whether the Lease is held.
func (t *Tenure) Holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holds()
}

func (t *Tenure) holds() bool {
	if t.since.IsZero() {
		return false
	}
	now := time.Now()
	return max(now.Sub(t.since), now.Round(0).Sub(t.since.Round(0))) < t.lasts
}

// current returns a context that is done when the Lease expires: nil before the first renewal, as
// what needs no Lease may run then. The error says that the Lease was held, and is not any more.
func (t *Tenure) current() (context.Context, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.term != nil && (!t.holds() || t.term.Err() != nil) {
		return nil, ErrExpired
	}
	return t.term, nil
}

type key struct{}

// bound is what a context knows of the tenure.
type bound struct {
	*Tenure
	ends bool // the context, or one that it was made from, ends with the tenure
}

// Begin returns a context in which one may begin something, and which ends with the Lease, with the
// cause [ErrExpired]. The error is why nothing may begin: the Lease has expired, or ctx is done.
// Cancel is never nil. Without leader election it returns ctx.
func Begin(ctx context.Context) (_ context.Context, cancel context.CancelFunc, err error) {
	if ctx.Err() != nil {
		return ctx, func() {}, context.Cause(ctx)
	}
	b, _ := ctx.Value(key{}).(bound)
	if b.Tenure == nil {
		return ctx, func() {}, nil
	}
	term, err := b.current()
	if err != nil || term == nil || b.ends {
		return ctx, func() {}, err
	}
	ctx, end := context.WithCancelCause(context.WithValue(ctx, key{}, bound{b.Tenure, true}))
	stop := context.AfterFunc(term, func() { end(ErrExpired) })
	return ctx, func() { stop(); end(nil) }, nil
}

// fenced returns a transport that sends no write after the tenure. What is written before it, by what
// needs no Lease, is sent.
func (t *Tenure) fenced(next http.RoundTripper) http.RoundTripper { return &fence{t, next} }

type fence struct {
	tenure *Tenure
	next   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return f.next.RoundTrip(r)
	}
	if _, err := f.tenure.current(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // the error is that it is not sent
		}
		return nil, fmt.Errorf("%s %s was not sent: %w", r.Method, r.URL.Path, err)
	}
	return f.next.RoundTrip(r)
}
