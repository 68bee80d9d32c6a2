// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"fmt"
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

// Turns of a later round come after those that wait already, whatever their owners are called.
func TestRoundsComeFirst(t *testing.T) {
	got := play(t, Options{Quiet: time.Hour}, func(s *story) {
		s.turn(context.Background(), &Owner{Name: "z"}, "1", func(turn *Turn) {
			s.turn(context.Background(), &Owner{Name: "a"}, "1", s.done("a, which began later"))
			s.done("z")(turn)
		})
		s.turn(context.Background(), &Owner{Name: "z"}, "2", s.done("z again"))
	})
	if diff := cmp.Diff([]string{"0s z", "0s z again", "0s a, which began later"}, got); diff != "" {
		t.Error(diff)
	}
}

// Time passes only when nothing is left to do.
func TestNothingIsSkipped(t *testing.T) {
	got := play(t, Options{Quiet: time.Hour}, func(s *story) {
		s.After(time.Second, func() { s.add("timer") })
		go func() {
			for i := range 3 {
				_ = s.Wait(&Turn{Ctx: context.Background(), Key: "n", Do: s.done(fmt.Sprint("turn ", i))}) //nolint:errcheck // it ends with nil
			}
		}()
	})
	if diff := cmp.Diff([]string{"0s turn 0", "0s turn 1", "0s turn 2", "1s timer"}, got); diff != "" {
		t.Error(diff)
	}
}

// A turn that gives up while it takes its time is not done.
func TestGivingUpInTheMiddle(t *testing.T) {
	got := play(t, Options{Quiet: time.Hour}, func(s *story) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		s.After(30*time.Second, cancel)
		go func() {
			err := s.Wait(&Turn{Ctx: ctx, Key: "slow", Takes: 3 * time.Second, Do: s.done("done")})
			s.add(fmt.Sprint("gave up: ", err))
		}()
	})
	if diff := cmp.Diff([]string{"1s gave up: context deadline exceeded"}, got); diff != "" {
		t.Error(diff)
	}
}

// A process that is dropped while it stands still does not come back.
func TestDroppedWhileItStandsStill(t *testing.T) {
	got := play(t, Options{Quiet: time.Hour}, func(s *story) {
		a := &Owner{Name: "a"}
		s.turn(context.Background(), a, "1", func(turn *Turn) { s.Pause(turn, 10*time.Second) })
		s.After(5*time.Second, func() {
			s.Drop(a, errors.New("gone"))
			s.add(fmt.Sprintf("paused %t", s.Paused(a)))
		})
	})
	if diff := cmp.Diff([]string{"5s paused false", "5.001s 1: gone"}, got); diff != "" {
		t.Error(diff)
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

// A wait for idleness: what is healed, when, and in which order. The quiet time is 10 seconds.
func TestHeals(t *testing.T) {
	wait := func(s *story, patience time.Duration) {
		s.NotifyIdle(patience, func(err error) { s.add(fmt.Sprint("idle: ", err)) })
	}
	tests := map[string]struct {
		begin func(*story)
		want  []string
	}{
		"not before anything waits for it": {func(s *story) {
			s.WhenIdle(func() { s.add("heal") })
			s.After(25*time.Second, func() { wait(s, 30*time.Second) })
		}, []string{"35s heal", "45s idle: <nil>"}},
		"all at once, in order": {func(s *story) {
			s.WhenIdle(func() { s.add("first") })
			s.WhenIdle(func() { s.add("second") })
			wait(s, 50*time.Second)
		}, []string{"10s first", "10s second", "20s idle: <nil>"}},
		"what a heal makes necessary": {func(s *story) {
			s.WhenIdle(func() {
				s.add("first")
				s.WhenIdle(func() { s.add("second") })
			})
			wait(s, 50*time.Second)
		}, []string{"10s first", "20s second", "30s idle: <nil>"}},
		"not while a process stands still": {func(s *story) {
			s.WhenIdle(func() { s.add("heal") })
			s.turn(context.Background(), &Owner{Name: "a"}, "1", func(turn *Turn) {
				if turn.Held() {
					s.done("turn")(turn)
					return
				}
				s.Pause(turn, 15*time.Second)
			})
			wait(s, 50*time.Second)
		}, []string{"15s turn", "25s heal", "35s idle: <nil>"}},
		"not when the patience ends before": {func(s *story) {
			s.After(5*time.Second, s.Active)
			s.WhenIdle(func() { s.add("heal") })
			wait(s, 12*time.Second)
		}, []string{"15s idle: not idle in time"}},
		"one wait after the other": {func(s *story) {
			s.NotifyIdle(time.Minute, func(err error) {
				s.add(fmt.Sprint("idle: ", err))
				s.Active()
				wait(s, time.Minute)
			})
		}, []string{"10s idle: <nil>", "20s idle: <nil>"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := play(t, Options{Quiet: 10 * time.Second}, func(s *story) {
				s.CancelTimers() // the one of play would be due
				go func() {
					time.Sleep(time.Minute)
					_ = s.Wait(&Turn{Ctx: context.Background(), Do: func(turn *Turn) { s.Stop(); turn.Finish(nil) }}) //nolint:errcheck // it ends with nil
				}()
				test.begin(s)
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
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
