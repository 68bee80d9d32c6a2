// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/failure"
)

var slow = failure.Classification{Backoff: failure.Backoff{Initial: time.Minute, Max: 3 * time.Minute}}

// about says whether d is want, or up to a tenth longer.
func about(d, want time.Duration) bool { return d >= want && d <= want+want/10 }

// Each failure doubles the delay up to Max, and the queue gets the same.
func TestLimiterDoubles(t *testing.T) {
	l := failure.NewLimiter[string]()
	for i, want := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute} {
		failures, delay := l.Failed("db", slow)
		same(t, "failures", i+1, failures)
		same(t, "NumRequeues", i+1, l.NumRequeues("db"))
		if !about(delay, want) {
			t.Errorf("after failure %d it waits %v, want %v", i+1, delay, want)
		}
		same(t, "after failure", delay, l.When("db"))
	}
}

// A request neither delays another nor is counted with it.
func TestLimiterIsPerKey(t *testing.T) {
	l := failure.NewLimiter[string]()
	for range 3 {
		l.Failed("a", slow)
	}
	if failures, delay := l.Failed("b", slow); failures != 1 || !about(delay, time.Minute) {
		t.Errorf("the first failure of b is number %d and waits %v", failures, delay)
	}
	l.Forget("a")
	same(t, "requeues of a", 0, l.NumRequeues("a"))
	same(t, "requeues of b", 1, l.NumRequeues("b"))
	if failures, delay := l.Failed("a", slow); failures != 1 || !about(delay, time.Minute) {
		t.Errorf("the first failure of a since is number %d and waits %v", failures, delay)
	}
	l.Forget("never seen")
}

// Each failure waits as long as its own class wants; those before count.
func TestLimiterHonorsTheLatestClassification(t *testing.T) {
	l := failure.NewLimiter[string]()
	l.Failed("db", slow)
	fast := failure.Classification{Backoff: failure.Backoff{Initial: time.Second, Max: time.Minute}}
	if failures, delay := l.Failed("db", fast); failures != 2 || !about(delay, 2*time.Second) {
		t.Errorf("failure %d waits %v, want 2 and 2s", failures, delay)
	}
	asked := failure.Classification{Backoff: slow.Backoff, RetryAfter: 7 * time.Second}
	for want := 3; want < 6; want++ {
		if failures, delay := l.Failed("db", asked); failures != want || delay != 7*time.Second {
			t.Errorf("failure %d waits %v, want %d and what the server asked for", failures, delay, want)
		}
	}
}

// What was not recorded is retried as something unknown is: later each time.
func TestLimiterOfWhatWasNotRecorded(t *testing.T) {
	l := failure.NewLimiter[string]()
	unknown := failure.Classify(errBoom).Backoff
	for i, want := range []time.Duration{unknown.Initial, 2 * unknown.Initial, 4 * unknown.Initial} {
		if got := l.When("db"); !about(got, want) {
			t.Errorf("the queue gets %v at failure %d, want %v", got, i+1, want)
		}
	}
	l.Failed("db", slow)
	if got := l.When("db"); !about(got, 3*time.Minute) {
		t.Errorf("the queue gets %v, want what the classification says", got)
	}
	if got := l.When("db"); !about(got, 16*unknown.Initial) {
		t.Errorf("the queue gets %v, want that of an unknown failure, the fifth in a row", got)
	}
}

// The queue may ask late: two failures, and then twice.
func TestLimiterIsAskedLate(t *testing.T) {
	l := failure.NewLimiter[string]()
	l.Failed("db", slow)
	_, want := l.Failed("db", slow)
	for range 2 {
		same(t, "backoff of the queue", want, l.When("db"))
	}
	same(t, "requeues", 2, l.NumRequeues("db"))
}

func TestLimiterFromTwoGoroutines(t *testing.T) {
	l := failure.NewLimiter[int]()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := range 1000 {
				l.Failed(i%3, slow)
				l.When(i % 3)
				l.NumRequeues(i % 3)
				if i%3 == 2 {
					l.Forget(2)
				}
			}
		})
	}
	all.Wait()
	same(t, "requeues", 668, l.NumRequeues(0))
}
