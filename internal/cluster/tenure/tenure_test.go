// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package tenure

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A write is sent before the first Lease and while it is held, and not after that; a read always.
func TestFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tn Tenure
		sent := 0
		fence := tn.fenced(roundTrip(func(*http.Request) (*http.Response, error) { sent++; return &http.Response{}, nil }))
		try := func(method string, want error) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, "http://x/y", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			before := sent
			if _, err := fence.RoundTrip(r); !errors.Is(err, want) || (sent > before) != (want == nil) { //nolint:bodyclose // there is none
				t.Errorf("%s: %v, sent: %v", method, err, sent > before)
			}
		}
		try(http.MethodPost, nil)
		tn.Renew(time.Now(), 15*time.Second)
		try(http.MethodPatch, nil)
		time.Sleep(15 * time.Second)
		try(http.MethodPatch, ErrExpired)
		try(http.MethodGet, nil)
		tn.Renew(time.Now(), 15*time.Second)
		try(http.MethodDelete, nil)
		tn.Release()
		try(http.MethodDelete, ErrExpired)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What runs ends with the Lease, at the time of the last renewal, and nothing begins after that until
// the Lease is renewed.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tn Tenure
		ctx := tn.Context(t.Context())
		begin := func(ctx context.Context, want error) context.Context {
			t.Helper()
			ctx, cancel, err := Begin(ctx)
			t.Cleanup(cancel)
			if !errors.Is(err, want) {
				t.Fatalf("got %v, want %v", err, want)
			}
			return ctx
		}
		if before := begin(ctx, nil); before != ctx {
			t.Error("what needs no Lease, and begins before it, ends with it")
		}
		began := time.Now()
		tn.Renew(began, 15*time.Second)
		running := begin(ctx, nil)
		time.Sleep(10 * time.Second)
		tn.Renew(time.Now().Add(-4*time.Second), 15*time.Second) // it was sent 4 seconds ago
		within := begin(running, nil)
		<-within.Done()
		if took := time.Since(began); took != 21*time.Second || context.Cause(within) != ErrExpired || context.Cause(running) != ErrExpired {
			t.Errorf("ended after %v with %v", took, context.Cause(within))
		}
		begin(running, ErrExpired)
		begin(ctx, ErrExpired)
		begin(context.WithoutCancel(running), ErrExpired) // what is granted some more time begins nothing either
		tn.Renew(time.Now(), 15*time.Second)
		again := begin(ctx, nil)
		tn.Release()
		synctest.Wait()
		if again.Err() == nil {
			t.Error("the Lease was given back, and what runs continues")
		}
		begin(ctx, ErrExpired)
		if ctx := t.Context(); begin(ctx, nil) != ctx {
			t.Error("without leader election there is another context")
		}
	})
}

// A process that was stopped knows before any timer has fired that its Lease has expired.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tn Tenure
		tn.Renew(time.Now(), 15*time.Second)
		tn.timer.Stop() // as if it had not had its turn
		ctx, cancel, _ := Begin(tn.Context(t.Context()))
		defer cancel()
		time.Sleep(15 * time.Second)
		if _, _, err := Begin(ctx); ctx.Err() != nil || !errors.Is(err, ErrExpired) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v", err, ctx.Err())
		}
	})
}

// A record is where a fake of a lock keeps its Lease.
type record struct {
	resourcelock.LeaderElectionRecord
	takes time.Duration // a write
}

func (r *record) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &r.LeaderElectionRecord, []byte(r.HolderIdentity + r.RenewTime.String()), nil
}
func (r *record) Create(ctx context.Context, now resourcelock.LeaderElectionRecord) error {
	return r.Update(ctx, now)
}
func (r *record) Update(ctx context.Context, now resourcelock.LeaderElectionRecord) error {
	select {
	case <-time.After(r.takes):
		r.LeaderElectionRecord = now
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (*record) RecordEvent(string) {}
func (*record) Identity() string   { return "me" }
func (*record) Describe() string   { return "a fake" }

// A leader whose API server is slow, but not too slow for leader election, is never fenced. One whose
// renewals fail is, before anyone can have its Lease, and one that gives it back is before it does.
func TestLeader(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes time.Duration
		fails bool // from the beginning of the second minute
	}{
		{name: "fast"}, {name: "slow", takes: 4 * time.Second}, {name: "hardly within the timeout of its client", takes: 5 * time.Second}, {name: "failing", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tn Tenure
				r := &record{takes: tt.takes}
				ctx, cancel := context.WithCancel(t.Context())
				defer time.Sleep(2 * time.Hour) // until leader election has ended
				defer cancel()
				lost := false
				go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
					Lock: &lock{r, &tn}, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
					Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() { lost = true }},
				})
				for !tn.Holds() {
					time.Sleep(time.Second)
				}
				running, end, err := Begin(tn.Context(ctx))
				defer end()
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if running.Err() != nil || lost {
					t.Fatalf("fenced: %v, lost: %v", context.Cause(running), lost)
				}
				if tt.fails {
					r.takes = time.Hour
					<-running.Done()
					if held := time.Since(r.RenewTime.Time); held > 15*time.Second || context.Cause(running) != ErrExpired {
						t.Errorf("ended %v after the last renewal, with %v", held, context.Cause(running))
					}
					return
				}
				cancel()
				synctest.Wait()
				if tn.Holds() {
					t.Error("the Lease is being given back, and the leader works on")
				}
			})
		})
	}
}
