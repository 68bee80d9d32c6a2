// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// story is what happened in a schedule, in order, with the virtual time since it began.
type story struct {
	*Schedule
	begin time.Time

	mu    sync.Mutex
	lines []string
}

func (s *story) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%s %s", time.Since(s.begin), text))
}

// turn waits in a goroutine of its own until it is done, and says what it ended with.
func (s *story) turn(ctx context.Context, owner *Owner, key string, do func(*Turn)) {
	go func() {
		err := s.Wait(&Turn{Ctx: ctx, Owner: owner, Key: key, Do: do})
		if err != nil {
			time.Sleep(time.Millisecond) // the driver continues at the same time: let it be first
			s.add(fmt.Sprintf("%s: %v", key, err))
		}
	}()
}

func (s *story) done(text string) func(*Turn) {
	return func(t *Turn) {
		s.add(text)
		t.Finish(nil)
	}
}

// play runs a schedule in virtual time until it is stopped, at the latest after a minute.
func play(t *testing.T, o Options, begin func(*story)) []string {
	t.Helper()
	var lines []string
	synctest.Test(t, func(*testing.T) {
		s := &story{Schedule: New(o), begin: time.Now()}
		s.After(time.Minute, s.Stop)
		begin(s)
		s.Run()
		s.Close(errors.New("closed"))
		synctest.Wait()
		lines = s.lines
	})
	return lines
}

func TestWhatHappensNext(t *testing.T) {
	ctx := context.Background()
	tests := map[string]struct {
		begin func(*story)
		want  string
	}{
		"turns that begin to wait at once, by owner and key": {func(s *story) {
			a, b := &Owner{Name: "a"}, &Owner{Name: "b"}
			s.turn(ctx, b, "1", s.done("b 1"))
			s.turn(ctx, a, "2", s.done("a 2"))
			s.turn(ctx, nil, "3", s.done("script"))
			s.turn(ctx, a, "1", s.done("a 1"))
		}, "0s a 1, 0s a 2, 0s b 1, 0s script"},
		"a timer before turns": {func(s *story) {
			s.turn(ctx, nil, "1", s.done("turn"))
			s.After(0, func() { s.add("timer") })
		}, "0s timer, 0s turn"},
		"timers when they are due": {func(s *story) {
			s.After(2*time.Second, func() { s.add("second") })
			s.After(time.Second, func() { s.add("first") })
		}, "1s first, 2s second"},
		"timers that are canceled never": {func(s *story) {
			s.After(2*time.Second, func() { s.add("second") })
			s.After(time.Second, func() { s.CancelTimers(); s.After(time.Second, s.Stop) })
		}, ""},
		"a turn that takes its time": {func(s *story) {
			go func() {
				_ = s.Wait(&Turn{Ctx: ctx, Key: "slow", Takes: time.Second, Do: s.done("slow")}) //nolint:errcheck // it ends with nil
			}()
		}, "1s slow"},
		"a turn that is put back": {func(s *story) {
			s.turn(ctx, nil, "held", func(turn *Turn) {
				s.add(fmt.Sprintf("held %t", turn.Held()))
				if !turn.Held() {
					s.Hold(turn, time.Now().Add(time.Second))
					return
				}
				turn.Finish(nil)
			})
		}, "0s held false, 1s held true"},
		"no turn of an owner that stands still": {func(s *story) {
			a := &Owner{Name: "a"}
			s.turn(ctx, a, "1", func(turn *Turn) {
				if !turn.Held() {
					s.Pause(turn, 5*time.Second)
					s.add(fmt.Sprintf("paused %t", s.Paused(a)))
					return
				}
				s.done("first")(turn)
			})
			s.turn(ctx, a, "2", s.done("second"))
			s.turn(ctx, &Owner{Name: "b"}, "3", s.done("other"))
		}, "0s paused true, 0s other, 5s first, 5s second"},
		"no turn that an owner begins while it stands still": {func(s *story) {
			a := &Owner{Name: "a"}
			s.turn(ctx, a, "1", func(turn *Turn) {
				if turn.Held() {
					s.done("first")(turn)
					return
				}
				s.Pause(turn, 5*time.Second)
				s.turn(ctx, a, "2", s.done("second"))
			})
		}, "5s first, 5s second"},
		"the turns of an owner that is dropped, with an error": {func(s *story) {
			a := &Owner{Name: "a"}
			s.turn(ctx, a, "1", s.done("a"))
			s.turn(ctx, nil, "0", s.done("script"))
			s.After(0, func() {
				s.add(fmt.Sprint(s.Drop(a, errors.New("gone")), s.Drop(a, errors.New("again")), s.Dropped(a)))
			})
		}, "0s true false true, 0s script, 1ms 1: gone"},
		"turns of the future of an owner that is dropped, slowly": {func(s *story) {
			a := &Owner{Name: "a"}
			s.Drop(a, errors.New("gone"))
			s.turn(ctx, a, "1", s.done("a"))
		}, "1.001s 1: gone"},
		"no turn that has given up": {func(s *story) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			s.After(30*time.Second, cancel)
			a := &Owner{Name: "a"}
			s.turn(short, a, "1", func(turn *Turn) { s.Hold(turn, time.Now().Add(10*time.Second)) })
		}, "1.001s 1: context deadline exceeded"},
		"one thing after the other, before turns": {func(s *story) {
			s.turn(ctx, nil, "1", s.done("turn"))
			s.OneByOne(func() { s.add("first") })
			s.OneByOne(func() { s.add("second") })
		}, "0s first, 0s second, 0s turn"},
		"turns that wait already before those of a later round, whatever their owners are called": {func(s *story) {
			s.turn(ctx, &Owner{Name: "z"}, "1", func(turn *Turn) {
				s.turn(ctx, &Owner{Name: "a"}, "1", s.done("a, which began later"))
				s.done("z")(turn)
			})
			s.turn(ctx, &Owner{Name: "z"}, "2", s.done("z again"))
		}, "0s z, 0s z again, 0s a, which began later"},
		"all there is to do, before time passes": {func(s *story) {
			s.After(time.Second, func() { s.add("timer") })
			go func() {
				for i := range 3 {
					_ = s.Wait(&Turn{Ctx: ctx, Key: "n", Do: s.done(fmt.Sprint("turn ", i))}) //nolint:errcheck // it ends with nil
				}
			}()
		}, "0s turn 0, 0s turn 1, 0s turn 2, 1s timer"},
		"not a turn that gives up while it takes its time": {func(s *story) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			s.After(30*time.Second, cancel)
			go func() {
				err := s.Wait(&Turn{Ctx: short, Key: "slow", Takes: 3 * time.Second, Do: s.done("done")})
				s.add(fmt.Sprint("gave up: ", err))
			}()
		}, "1s gave up: context deadline exceeded"},
		"nothing of a process that is dropped while it stands still": {func(s *story) {
			a := &Owner{Name: "a"}
			s.turn(ctx, a, "1", func(turn *Turn) { s.Pause(turn, 10*time.Second) })
			s.After(5*time.Second, func() {
				s.Drop(a, errors.New("gone"))
				s.add(fmt.Sprintf("paused %t", s.Paused(a)))
			})
		}, "5s paused false, 5.001s 1: gone"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, strings.Join(play(t, Options{Quiet: time.Hour}, test.begin), ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// source does things of its own at certain times.
type source struct {
	s    *story
	name string
	at   []time.Time
}

func (o *source) Due() time.Time {
	if len(o.at) == 0 {
		return time.Time{}
	}
	return o.at[0]
}

func (o *source) Step() bool {
	if len(o.at) == 0 || time.Now().Before(o.at[0]) {
		return false
	}
	o.at = o.at[1:]
	o.s.add(o.name)
	return true
}

func TestSources(t *testing.T) {
	begin := func(s *story) {
		s.Sources(&source{s, "first", []time.Time{s.begin, s.begin.Add(time.Second)}}, &source{s, "last", []time.Time{s.begin}})
		s.turn(context.Background(), nil, "1", s.done("turn"))
	}
	want := "0s first, 0s turn, 0s last, 1s first"
	if got := strings.Join(play(t, Options{Quiet: time.Hour}, begin), ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	orders := map[string]bool{}
	for seed := range uint64(50) {
		o := Options{Seed: seed, Quiet: time.Hour}
		once, again := strings.Join(play(t, o, begin), ", "), strings.Join(play(t, o, begin), ", ")
		if once != again {
			t.Errorf("seed %d: %s one time and %s another", seed, once, again)
		}
		orders[once] = true
	}
	if len(orders) != 6 {
		t.Errorf("50 seeds have %d orders of three things, want 6", len(orders))
	}
}

// The last source has its time although there is always a turn: the garbage collector of a cluster
// works beside an operator that does not stop.
func TestTheLastSourceIsNotStarved(t *testing.T) {
	for seed := range uint64(3) {
		lines := play(t, Options{Seed: seed, Quiet: time.Hour}, func(s *story) {
			s.Sources(nil, &source{s, "last", []time.Time{s.begin, s.begin}})
			turns := 0
			var busy func(*Turn)
			busy = func(turn *Turn) {
				s.add("turn")
				turn.Finish(nil)
				if turns++; turns < 4*mostWaited {
					s.turn(context.Background(), nil, "busy", busy)
				}
			}
			s.turn(context.Background(), nil, "busy", busy)
		})
		if at := slices.Index(lines, "0s last"); at < 0 || at > mostWaited {
			t.Errorf("seed %d: the last source was asked after %d of %d", seed, at, len(lines))
		}
	}
}

func TestIdle(t *testing.T) {
	wait := func(s *story, patience time.Duration) {
		s.NotifyIdle(patience, func(err error) { s.add(fmt.Sprint("idle: ", err)) })
	}
	tests := map[string]struct {
		begin func(*story)
		want  string
	}{
		"after the quiet time": {func(s *story) { wait(s, 50*time.Second) }, "10s idle: <nil>"},
		"after the last activity": {func(s *story) {
			s.After(9*time.Second, s.Active)
			wait(s, 50*time.Second)
		}, "19s idle: <nil>"},
		"not while something is due": {func(s *story) {
			s.After(15*time.Second, func() { s.add("timer") })
			wait(s, 50*time.Second)
		}, "15s timer, 25s idle: <nil>"},
		"not before everything is healed, and quiet again": {func(s *story) {
			s.WhenIdle(func() { s.add("heal") })
			wait(s, 50*time.Second)
		}, "10s heal, 20s idle: <nil>"},
		"later after a failure": {func(s *story) {
			s.SlowDown(2 * time.Second)
			wait(s, 50*time.Second)
		}, "14s idle: <nil>"},
		"as late as a process backs off": {func(s *story) {
			s.idleness.backoff = 30 * time.Second
			s.SlowDown(time.Second)
			wait(s, 50*time.Second)
		}, "30s idle: <nil>"},
		"not within the patience": {func(s *story) {
			for i := range 10 {
				s.After(time.Duration(i)*5*time.Second, s.Active)
			}
			wait(s, 20*time.Second)
		}, "25s idle: not idle in time"},
		"not when the wait is canceled": {func(s *story) {
			s.After(time.Second, func() { s.CancelIdle(errors.New("canceled")) })
			wait(s, 50*time.Second)
		}, "1s idle: canceled"},
		"not before anything waits for it": {func(s *story) {
			s.WhenIdle(func() { s.add("heal") })
			s.After(25*time.Second, func() { wait(s, 30*time.Second) })
		}, "35s heal, 45s idle: <nil>"},
		"all at once, in order": {func(s *story) {
			s.WhenIdle(func() { s.add("first") })
			s.WhenIdle(func() { s.add("second") })
			wait(s, 50*time.Second)
		}, "10s first, 10s second, 20s idle: <nil>"},
		"what a heal makes necessary": {func(s *story) {
			s.WhenIdle(func() {
				s.add("first")
				s.WhenIdle(func() { s.add("second") })
			})
			wait(s, 50*time.Second)
		}, "10s first, 20s second, 30s idle: <nil>"},
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
		}, "15s turn, 25s heal, 35s idle: <nil>"},
		"not when the patience ends before": {func(s *story) {
			s.After(5*time.Second, s.Active)
			s.WhenIdle(func() { s.add("heal") })
			wait(s, 12*time.Second)
		}, "15s idle: not idle in time"},
		"one wait after the other": {func(s *story) {
			s.NotifyIdle(time.Minute, func(err error) {
				s.add(fmt.Sprint("idle: ", err))
				s.Active()
				wait(s, time.Minute)
			})
		}, "10s idle: <nil>, 20s idle: <nil>"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lines := play(t, Options{Quiet: 10 * time.Second}, func(s *story) {
				s.CancelTimers() // the one of play would be due
				s.Sources(nil, &source{s, "stop", nil})
				go func() {
					time.Sleep(time.Minute)
					_ = s.Wait(&Turn{Ctx: context.Background(), Do: func(turn *Turn) { s.Stop(); turn.Finish(nil) }}) //nolint:errcheck // it ends with nil
				}()
				test.begin(s)
			})
			if diff := cmp.Diff(test.want, strings.Join(lines, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
