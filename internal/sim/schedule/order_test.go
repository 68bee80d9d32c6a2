// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// threeTurns begins to wait with three turns at the same time.
func threeTurns(s *story) {
	for _, name := range []string{"c", "a", "b"} {
		s.turn(context.Background(), &Owner{Name: name}, "1", s.done(name))
	}
}

// A seed is one order of turns, the same each time, and seeds between them come to all orders.
// Seed 0 is the order in which turns begin to wait, and of those at the same time that of their
// owners.
func TestSeedsAreOrders(t *testing.T) {
	order := func(seed uint64) string {
		return strings.Join(play(t, Options{Seed: seed, Quiet: time.Hour}, threeTurns), ", ")
	}
	if got, want := order(0), "0s a, 0s b, 0s c"; got != want {
		t.Errorf("seed 0: got %s, want %s", got, want)
	}
	seen := map[string]bool{}
	for seed := uint64(1); seed <= 60; seed++ {
		once := order(seed)
		if again := order(seed); once != again {
			t.Errorf("seed %d: %s one time and %s another", seed, once, again)
		}
		seen[once] = true
	}
	if len(seen) != 6 {
		t.Errorf("60 seeds have %d orders of three turns, want 6", len(seen))
	}
}

// Which of several things comes first is random only with a seed.
func TestPick(t *testing.T) {
	for n := 1; n < 5; n++ {
		if got := newOrder(0).Pick(n); got != 0 {
			t.Errorf("without a seed, %d of %d is picked", got, n)
		}
	}
	seeded, seen := newOrder(7), map[int]bool{}
	for range 100 {
		seen[seeded.Pick(3)] = true
	}
	if len(seen) != 3 {
		t.Errorf("100 picks of three with a seed come to %d of them", len(seen))
	}
}

// After the end everything that waits gets the error of the end, and what comes later too.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, closed := New(Options{}), errors.New("closed")
		s.After(time.Second, s.Stop)
		early := make(chan error, 1)
		go func() {
			early <- s.Wait(&Turn{Ctx: context.Background(), Do: func(turn *Turn) { s.Hold(turn, time.Now().Add(time.Hour)) }})
		}()
		s.Run()
		s.Close(closed)
		if err := <-early; !errors.Is(err, closed) {
			t.Errorf("a turn that waits at the end gets %v", err)
		}
		if err := s.Wait(&Turn{Ctx: context.Background()}); !errors.Is(err, closed) {
			t.Errorf("a turn after the end gets %v", err)
		}
		if !s.Dropped(&Owner{}) {
			t.Error("an owner is not dropped after the end")
		}
	})
}

// A failure makes the quiet time longer, never shorter, and at least as long as the longest
// backoff.
func TestSlowDown(t *testing.T) {
	i := idleness{quiet: time.Minute, least: time.Minute}
	var got []time.Duration
	for _, failed := range []time.Duration{0, 5 * time.Minute, time.Minute} {
		i.SlowDown(failed)
		got = append(got, i.Quiet())
	}
	if diff := cmp.Diff([]time.Duration{time.Minute, 11 * time.Minute, 11 * time.Minute}, got); diff != "" {
		t.Error(diff)
	}
	i.backoff = 17 * time.Minute
	if i.SlowDown(0); i.Quiet() != 17*time.Minute {
		t.Errorf("the quiet time is %s, want the longest backoff", i.Quiet())
	}
}

func TestEarlier(t *testing.T) {
	early := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	late := early.Add(time.Second)
	times := []time.Time{earlier(early, late), earlier(late, early), earlier(time.Time{}, early), earlier(early, time.Time{})}
	if slices.ContainsFunc(times, func(at time.Time) bool { return !at.Equal(early) }) || !earlier(time.Time{}, time.Time{}).IsZero() {
		t.Errorf("got %v", times)
	}
}
