// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
)

func TestIf(t *testing.T) {
	asked := 0
	lazily := func(answer bool, err error) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) { asked++; return answer, err }
	}
	var j journal
	a, b := j.ok("A"), j.ok("B")
	for _, tt := range []struct {
		name   string
		action ctrlkit.Action
		ran    []string
		err    string
	}{
		{"If true", ctrlkit.If(true, a), []string{"A"}, ""},
		{"If false", ctrlkit.If(false, a), nil, ""},
		{"IfElse true", ctrlkit.IfElse(true, a, b), []string{"A"}, ""},
		{"IfElse false", ctrlkit.IfElse(false, a, b), []string{"B"}, ""},
		{"IfFunc true", ctrlkit.IfFunc("ready", lazily(true, nil), a), []string{"A"}, ""},
		{"IfFunc false", ctrlkit.IfFunc("ready", lazily(false, nil), a), nil, ""},
		{"IfFunc error", ctrlkit.IfFunc("ready", lazily(true, errBoom), a), nil, "condition ready: boom"},
		{"IfFunc panic", ctrlkit.IfFunc("ready", func(context.Context) (bool, error) { panic("no") }, a), nil, "condition ready: panic: no"},
		{"IfElseFunc true", ctrlkit.IfElseFunc("ready", lazily(true, nil), a, b), []string{"A"}, ""},
		{"IfElseFunc false", ctrlkit.IfElseFunc("ready", lazily(false, nil), a, b), []string{"B"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if asked = 0; len(j.ran) > 0 {
				j.ran = nil
			}
			_ = tt.action.Description()
			same(t, "asked", 0, asked)
			if _, err := tt.action.Run(background()); text(err) != tt.err {
				t.Errorf("got error %q, want %q", text(err), tt.err)
			}
			j.want(t, tt.ran...)
		})
	}
}

func TestIfFuncIsAskedWhenTheRunGetsThere(t *testing.T) {
	var j journal
	var made bool
	w := ctrlkit.Sequential(
		ctrlkit.NewAction("Make", func(context.Context) (ctrl.Result, error) { made = true; return ctrlkit.NoRequeue() }),
		ctrlkit.IfFunc("made", func(context.Context) (bool, error) { return made, nil }, j.ok("Use")),
	)
	if _, err := w.Run(background()); err != nil {
		t.Fatal(err)
	}
	j.want(t, "Use")
}

func TestRetry(t *testing.T) {
	terminal := reconcile.TerminalError(errBoom)
	for _, tt := range []struct {
		name     string
		outcomes []error // of the attempts; the last one repeats
		steps    int
		attempts int
		took     time.Duration
		want     string
	}{
		{"success", []error{nil}, 3, 1, 0, ""},
		{"success in the end", []error{errBoom, errBoom, nil}, 3, 3, 3 * time.Second, ""},
		{"failure", []error{errBoom}, 3, 3, 3 * time.Second, "after 3 attempts: A: boom"},
		{"no steps are one attempt", []error{errBoom}, 0, 1, 0, "A: boom"},
		{"exit", []error{ctrlkit.ErrExit}, 3, 1, 0, "A: exit"},
		{"wait", []error{ctrlkit.Wait("x")}, 3, 1, 0, "A: waiting for x"},
		{"terminal", []error{terminal}, 3, 1, 0, "A: terminal error: boom"},
		{"terminal beside what may pass", []error{errors.Join(terminal, errBoom)}, 2, 2, time.Second, "after 2 attempts: A: terminal error: boom\nboom"},
		{"panic", []error{&ctrlkit.PanicError{Value: "no"}}, 3, 1, 0, "A: panic: no"},
		{"panic beside what may pass", []error{errors.Join(errBoom, &ctrlkit.PanicError{Value: "no"})}, 3, 1, 0, "A: boom\npanic: no"},
		{"continue", []error{ctrlkit.RequeueWithin(1)}, 3, 1, 0, "A: continue, and requeue"},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			attempts := 0
			a := ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) {
				attempts++
				return ctrlkit.RequeueIfError(tt.outcomes[min(attempts, len(tt.outcomes))-1])
			})
			begin := time.Now()
			_, err := ctrlkit.Retry(wait.Backoff{Duration: time.Second, Factor: 2, Steps: tt.steps}, a).Run(t.Context())
			if attempts != tt.attempts || time.Since(begin) != tt.took || text(err) != tt.want {
				t.Errorf("%d attempts in %s with %q, want %d in %s with %q", attempts, time.Since(begin), text(err), tt.attempts, tt.took, tt.want)
			}
		})
	}
}

// What may pass beside a terminal error is tried again; a terminal error beside a wait or a time is
// not.
func TestRetryLooksAtEachCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		gone := j.ends("Gone", ctrl.Result{}, errTerminal)
		backoff := wait.Backoff{Duration: time.Second, Steps: 2}
		for _, tt := range []struct {
			action ctrlkit.Action
			want   []string
		}{
			{ctrlkit.JoinOrdered(gone, j.fails("A")), []string{"Gone", "A", "Gone", "A"}},
			{ctrlkit.JoinOrdered(gone, j.waits("A")), []string{"Gone", "A"}},
			{ctrlkit.JoinOrdered(gone, j.ends("A", ctrl.Result{RequeueAfter: time.Minute}, nil)), []string{"Gone", "A"}},
		} {
			j.ran = nil
			_, _ = ctrlkit.Retry(backoff, tt.action).Run(t.Context())
			j.want(t, tt.want...)
		}
	})
}

// The attempts and the pauses of a backoff begin anew in each run.
func TestRetryBeginsAnewInEachRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		w := ctrlkit.Retry(wait.Backoff{Duration: time.Second, Factor: 10, Steps: 2}, j.fails("A"))
		for range 2 {
			begin := time.Now()
			_, err := w.Run(t.Context())
			same(t, "error", "after 2 attempts: A: boom", text(err))
			same(t, "time", time.Second, time.Since(begin))
		}
		j.want(t, "A", "A", "A", "A")
	})
}

func TestConditionIsNotAskedWhenCanceled(t *testing.T) {
	asked := func(context.Context) (bool, error) { t.Error("the condition was asked"); return true, nil }
	if _, err := ctrlkit.IfFunc("ready", asked, ctrlkit.Nop()).Run(canceled()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestRetryStopsWithTheContext(t *testing.T) {
	backoff := wait.Backoff{Duration: 10 * time.Second, Steps: 100}
	for name, limit := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"canceled while it waits": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(15*time.Second, cancel)
			return ctx, cancel
		},
		"deadline before the next attempt": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 19*time.Second)
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			ctx, cancel := limit(t.Context())
			defer cancel()
			var j journal
			begin := time.Now()
			_, err := ctrlkit.Retry(backoff, j.fails("A")).Run(ctx)
			if !errors.Is(err, errBoom) {
				t.Errorf("the cause is missing: %v", err)
			}
			if took := time.Since(begin); took > 15*time.Second {
				t.Errorf("continued for %s", took)
			}
			j.want(t, "A", "A")
		})
	}
}

func TestRetriedTimeoutDoesNotCollideWithItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ctrlkit.Retry(wait.Backoff{Duration: time.Second, Steps: 3}, ctrlkit.Timeout(time.Second, heeding("A")))
		if _, err := w.Run(t.Context()); text(err) != "after 3 attempts: A: timed out after 1s: context deadline exceeded" {
			t.Error(err)
		}
	})
}

func TestOnce(t *testing.T) {
	for name, join := range map[string]func(...ctrlkit.Action) ctrlkit.Action{"Join": ctrlkit.Join, "ParallelJoin": ctrlkit.ParallelJoin} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			shared := ctrlkit.Once(ctrlkit.NewAction("Shared", func(context.Context) (ctrl.Result, error) {
				runs.Add(1)
				return ctrl.Result{RequeueAfter: time.Minute}, errBoom
			}))
			var j journal
			w := join(ctrlkit.Sequential(shared, j.ok("never")), ctrlkit.If(true, shared), foreignAction{shared})
			for reconcile := range int32(3) {
				got, err := w.Run(background())
				same(t, "requeued after", time.Minute, got.RequeueAfter)
				same(t, "error", "Shared: boom; foreign: Shared: boom", text(err))
				same(t, "runs.Load", reconcile+1, runs.Load())
			}
			j.want(t)
		})
	}
}

// What has failed once in a run stays so: another attempt would not run it.
func TestRetryDoesNotWaitForAFailedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		backoff := wait.Backoff{Duration: time.Second, Steps: 4}
		shared := ctrlkit.Once(j.fails("A"))
		begin := time.Now()
		_, err := ctrlkit.Retry(backoff, shared).Run(t.Context())
		same(t, "error", "A: boom", text(err))
		same(t, "time", 0, time.Since(begin))
		j.want(t, "A")
		j.ran = nil
		if _, err = ctrlkit.Retry(backoff, ctrlkit.JoinOrdered(shared, j.fails("B"))).Run(t.Context()); text(err) != "after 4 attempts: A: boom; B: boom" {
			t.Error(err)
		}
		j.want(t, "A", "B", "B", "B", "B")
		j.ran = nil
		if _, err = ctrlkit.Once(ctrlkit.Retry(backoff, j.fails("A"))).Run(t.Context()); text(err) != "after 4 attempts: A: boom" {
			t.Error(err)
		}
		j.want(t, "A", "A", "A", "A")
	})
}

func TestFailureOfAOnceIsOneCause(t *testing.T) {
	var j journal
	for _, tt := range []struct {
		name  string
		once  ctrlkit.Action
		want  string
		waits int
		root  string
	}{
		{"an error", ctrlkit.Once(j.fails("A")), "A: boom; B: boom", 0, "A: boom; B: boom"},
		{"several", ctrlkit.Once(ctrlkit.Join(j.fails("A"), j.waits("C"))), "A: boom; C: waiting for the world; B: boom", 1, "A: boom; B: boom"},
		{"a wait", ctrlkit.Once(j.waits("A")), "A: waiting for the world; B: boom", 1, "B: boom"},
		{"a terminal error", ctrlkit.Once(fails("A", errTerminal)), "A: terminal error: no such region; B: boom", 0, "A: terminal error: no such region; B: boom"},
		{"a mark to continue", ctrlkit.Once(returns("A", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.RequeueWithin(1) })), "B: boom", 0, "B: boom"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, w := range []ctrlkit.Action{
				ctrlkit.Join(tt.once, j.fails("B"), ctrlkit.Sequential(tt.once, tt.once)),
				ctrlkit.Join(ctrlkit.Join(tt.once, j.fails("B")), ctrlkit.Sequential(tt.once)),
				ctrlkit.Finally(ctrlkit.ParallelJoin(tt.once, j.fails("B")), tt.once),
			} {
				result, err := w.Run(background())
				if text(err) != tt.want || len(ctrlkit.Waits(err)) != tt.waits {
					t.Errorf("%s: got %q and %v, want %q and %d waits", w.Description(), text(err), ctrlkit.Waits(err), tt.want, tt.waits)
				}
				if _, err = ctrlkit.IgnoreExit(result, err); text(err) != tt.root {
					t.Errorf("%s: at the root it is %q, want %q", w.Description(), text(err), tt.root)
				}
			}
		})
	}
}

// Functions that run the same Once by themselves, with the context that they are given, share it as
// well.
func TestOnceIsSharedByFunctions(t *testing.T) {
	for name, join := range map[string]func(...ctrlkit.Action) ctrlkit.Action{"Join": ctrlkit.Join, "ParallelJoin": ctrlkit.ParallelJoin} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			shared := ctrlkit.Once(ctrlkit.NewAction("Shared", func(context.Context) (ctrl.Result, error) {
				runs.Add(1)
				return ctrlkit.NoRequeue()
			}))
			w := join(ctrlkit.NewAction("A", shared.Run), ctrlkit.NewAction("B", ctrlkit.Sequential(shared).Run))
			for n := range int32(2) {
				if _, err := w.Run(background()); err != nil || runs.Load() != n+1 {
					t.Errorf("%d runs after %d reconciles, %v", runs.Load(), n+1, err)
				}
			}
		})
	}
}

// A place that is not cut off receives what the first one returns at the end of its time.
func TestOnceIsAwaitedWhileItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowly := ctrlkit.Once(ctrlkit.NewAction("Shared", func(ctx context.Context) (ctrl.Result, error) {
			<-ctx.Done()
			<-time.After(ctrlkit.TimeoutGrace / 2)
			return ctrlkit.RequeueIfError(errBoom)
		}))
		_, err := ctrlkit.ParallelJoin(ctrlkit.Timeout(time.Second, slowly), ctrlkit.Sequential(nap("Later"), slowly)).Run(t.Context())
		same(t, "error", "Shared: boom", text(err))
	})
}

func TestNewRunSharesOverWorkflows(t *testing.T) {
	var j journal
	shared := ctrlkit.Once(j.ok("Shared"))
	ctx := ctrlkit.ContextWithRun(background())
	for range 3 {
		_, _ = ctrlkit.Sequential(shared).Run(ctx)
	}
	_, _ = shared.Run(ctx)
	j.want(t, "Shared")
	_, _ = shared.Run(ctrlkit.ContextWithRun(ctx))
	j.want(t, "Shared", "Shared")
}

func TestOnceNeverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		shared := ctrlkit.Once(deaf("Shared", release, new(atomic.Int32)))
		ctx := ctrlkit.ContextWithRun(t.Context())
		_, err := ctrlkit.ParallelJoin(ctrlkit.Timeout(time.Second, shared), ctrlkit.Sequential(nap("Late"), shared)).Run(ctx)
		if want := "Once(Shared): timed out after 1s in Shared: it is still running; Shared, which ran elsewhere, was cut off: context deadline exceeded"; text(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestFinally(t *testing.T) {
	panics := ctrlkit.NewAction("Panics", func(context.Context) (ctrl.Result, error) { panic("no") })
	var j journal
	for _, tt := range []struct {
		body ctrlkit.Action
		want string
	}{
		{j.ok("A"), ""},
		{j.fails("A"), "A: boom"},
		{j.waits("A"), "A: waiting for the world"},
		{panics, "Panics: panic: no"},
		{ctrlkit.Sequential(j.fails("A"), j.ok("B")), "A: boom"},
		{ctrlkit.Finally(j.fails("A"), panics), "A: boom; Panics: panic: no"},
	} {
		t.Run(tt.body.Description(), func(t *testing.T) {
			j.ran = nil
			got, err := ctrlkit.Finally(tt.body, j.ends("Tail", ctrl.Result{RequeueAfter: 5}, nil)).Run(background())
			same(t, "error", tt.want, text(err))
			same(t, "requeued after", 5, got.RequeueAfter)
			if len(j.ran) == 0 || j.ran[len(j.ran)-1] != "Tail" {
				t.Errorf("ran %v: the tail is missing", j.ran)
			}
		})
	}
	t.Run("both fail", func(t *testing.T) {
		_, err := ctrlkit.Finally(j.fails("A"), j.fails("Tail")).Run(background())
		same(t, "error", "A: boom; Tail: boom", text(err))
	})
}

func TestFinallyRunsItsTailAfterACancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		tail := ctrlkit.NewAction("Tail", func(ctx context.Context) (ctrl.Result, error) {
			j.note(fmt.Sprint(ctx.Err(), ctx.Value(testKey{})))
			<-ctx.Done() // it must run, but not for ever
			return ctrlkit.RequeueIfError(ctx.Err())
		})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), testKey{}, "value"))
		cancel()
		begin := time.Now()
		_, err := ctrlkit.Finally(j.ok("A"), tail).Run(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != ctrlkit.FinallyGrace {
			t.Errorf("got %v after %s", err, time.Since(begin))
		}
		j.want(t, "<nil>value")
	})
}

// Every shutdown comes while something runs. The tails are finished then, within a grace that ends.
func TestFinallyFinishesItsTail(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc) // one second after the beginning
		err  error                                                       // of the tail's context in the end
		most time.Duration                                               // what its deadline leaves, zero if it has none
	}{
		{"canceled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, context.Canceled, 0},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, context.DeadlineExceeded, time.Second + ctrlkit.FinallyGrace},
		{"canceled before its deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, context.Canceled, time.Hour + ctrlkit.FinallyGrace},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			var j journal
			tail := func(takes time.Duration) ctrlkit.Action {
				return ctrlkit.NewAction("UpdateStatus", func(ctx context.Context) (ctrl.Result, error) {
					deadline, bounded := ctx.Deadline()
					if got := time.Until(deadline); bounded != (tt.most > 0) || bounded && got != tt.most {
						t.Errorf("the tail has the time %s, want %s", got, tt.most)
					}
					select {
					case <-ctx.Done():
						return ctrlkit.RequeueIfError(fmt.Errorf("status not written: %w", ctx.Err()))
					case <-time.After(takes):
						j.note(fmt.Sprint("written with ", ctx.Value(testKey{})))
						return ctrlkit.NoRequeue()
					}
				})
			}
			run := func(takes time.Duration) (time.Duration, error) {
				ctx, cancel := tt.end(context.WithValue(t.Context(), testKey{}, "value"))
				defer cancel()
				begin := time.Now()
				_, err := ctrlkit.Finally(ctrlkit.Nop(), tail(takes)).Run(ctx)
				return time.Since(begin), err
			}
			if _, err := run(5 * time.Second); err != nil {
				t.Error(err)
			}
			j.want(t, "written with value")
			took, err := run(time.Hour)
			if !errors.Is(err, tt.err) || took != time.Second+ctrlkit.FinallyGrace {
				t.Errorf("a tail that takes an hour ended after %s with %v, want %v", took, err, tt.err)
			}
		})
	}
}

// The context of a tail ends with the tail, and leaves nothing running in the bubble.
func TestContextOfTheTailEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept context.Context
		tail := ctrlkit.NewAction("Tail", func(ctx context.Context) (ctrl.Result, error) { kept = ctx; return ctrlkit.NoRequeue() })
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := ctrlkit.Finally(ctrlkit.Nop(), tail).Run(ctx); err != nil || kept.Err() == nil {
			t.Errorf("got %v; the context of the tail ended with %v", err, kept.Err())
		}
		cancel()
	})
}

type testKey struct{}
