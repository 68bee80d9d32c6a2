// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
)

// deaf returns an action that ignores its context until release is closed, and counts how many of
// its runs overlap.
func deaf(name string, release <-chan struct{}, most *atomic.Int32, opts ...ctrlkit.ActionOption) ctrlkit.Action {
	var now atomic.Int32
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		<-release
		return ctrlkit.NoRequeue()
	}, opts...)
}

func heeding(name string) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(ctx context.Context) (ctrl.Result, error) {
		<-ctx.Done()
		return ctrlkit.RequeueIfError(ctx.Err())
	})
}

func TestTimeoutPassesOnWhatComesInTime(t *testing.T) {
	var j journal
	want := ctrl.Result{RequeueAfter: time.Minute}
	got, err := ctrlkit.Timeout(time.Second, j.ends("A", want, errBoom)).Run(background())
	same(t, "result", want, got)
	same(t, "error", "A: boom", text(err))
}

func TestTimeoutReturnsAtItsDeadline(t *testing.T) {
	after, late := 5*time.Second, 5*time.Second+ctrlkit.TimeoutGrace
	for _, tt := range []struct {
		name    string
		action  func(release <-chan struct{}) ctrlkit.Action
		want    string
		running []string
		took    time.Duration
	}{
		{"deaf", func(r <-chan struct{}) ctrlkit.Action { return deaf("A", r, new(atomic.Int32)) },
			"A: timed out after 5s: it is still running", []string{"A"}, late},
		{"heeding", func(<-chan struct{}) ctrlkit.Action { return heeding("A") },
			"A: timed out after 5s: context deadline exceeded", []string{"A"}, after},
		{"inside a sequence", func(r <-chan struct{}) ctrlkit.Action {
			return ctrlkit.Sequential(ctrlkit.Nop(), deaf("A", r, new(atomic.Int32)), deaf("B", r, new(atomic.Int32)))
		}, "Sequential(Nop, A, B): timed out after 5s in A: it is still running", []string{"A"}, late},
		{"heeding inside a sequence", func(<-chan struct{}) ctrlkit.Action {
			return ctrlkit.Sequential(heeding("A"), heeding("B"))
		}, "Sequential(A, B): timed out after 5s in A: A: context deadline exceeded", []string{"A"}, after},
		{"of another type", func(r <-chan struct{}) ctrlkit.Action { return foreignAction{deaf("A", r, new(atomic.Int32))} },
			"foreign: timed out after 5s in foreign, A: it is still running", []string{"foreign", "A"}, late},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			begin := time.Now()
			_, err := ctrlkit.Timeout(5*time.Second, tt.action(release)).Run(t.Context())
			if took := time.Since(begin); took != tt.took {
				t.Errorf("took %s, want %s", took, tt.took)
			}
			var timeout *ctrlkit.TimeoutError
			if !errors.As(err, &timeout) || !errors.Is(err, context.DeadlineExceeded) || text(err) != tt.want {
				t.Fatalf("got error %v, want %s", err, tt.want)
			}
			if !slices.Equal(timeout.Running, tt.running) {
				t.Errorf("running: got %v, want %v", timeout.Running, tt.running)
			}
		})
	}
}

// What has been returned before the deadline, or because of it, is kept, whether all honor their
// context or not.
func TestTimeoutKeepsWhatWasReturned(t *testing.T) {
	var j journal
	quota := fails("Quota", errors.New("quota exceeded"))
	poll := j.ends("Poll", ctrl.Result{RequeueAfter: 5 * time.Second}, nil)
	var release chan struct{}
	stuck := ctrlkit.NewAction("Stuck", func(context.Context) (ctrl.Result, error) { <-release; return ctrlkit.NoRequeue() })
	flaky := flakyAction()
	never := ctrlkit.IfFunc("ready", func(context.Context) (bool, error) { return false, errBoom }, ctrlkit.Nop())
	all := ctrlkit.ParallelJoin
	for _, tt := range []struct {
		name   string
		action ctrlkit.Action
		want   string
		after  time.Duration
		waits  int
	}{
		{"all honor their context", all(quota, poll, heeding("Heeds")), "Quota: quota exceeded; Act: timed out after 1s in Heeds: Heeds: context deadline exceeded", 5 * time.Second, 0},
		{"one ignores its context", all(quota, poll, stuck), "Quota: quota exceeded; Act: timed out after 1s in Stuck: it is still running", 5 * time.Second, 0},
		{"one honors its context and one does not", all(heeding("Heeds"), ctrlkit.Sequential(nap("Nap"), stuck)), "Heeds: context deadline exceeded; Act: timed out after 1s in Heeds, Stuck: it is still running", 0, 0},
		{"two, whichever was first", all(fails("B", errBoom), fails("A", errBoom), stuck), "A: boom; B: boom; Act: timed out after 1s in Stuck: it is still running", 0, 0},
		{"a wait", all(j.waits("Waits"), stuck), "Waits: waiting for the world; Act: timed out after 1s in Stuck: it is still running", 0, 1},
		{"terminal", all(fails("Gone", errTerminal), stuck), "Gone: terminal error: no such region; Act: timed out after 1s in Stuck: it is still running", 0, 0},
		{"terminal because of the deadline", ctrlkit.NewAction("Act", func(ctx context.Context) (ctrl.Result, error) {
			<-ctx.Done()
			return ctrlkit.RequeueIfError(reconcile.TerminalError(ctx.Err()))
		}),
			"Act: timed out after 1s: terminal error: context deadline exceeded", 0, 0},
		{"what has been tried again", all(flaky, stuck), "Act: timed out after 1s in Stuck: it is still running", 0, 0},
		{"what has been tried in vain", all(ctrlkit.Retry(wait.Backoff{Duration: time.Millisecond, Steps: 2}, quota), stuck),
			"after 2 attempts: Quota: quota exceeded; Act: timed out after 1s in Stuck: it is still running", 0, 0},
		{"inside another action", all(around(quota), stuck), "Around: around: Quota: quota exceeded; Act: timed out after 1s in Stuck: it is still running", 0, 0},
		{"inside another action that runs", all(around(ctrlkit.ParallelJoin(quota, stuck))),
			"Quota: quota exceeded; Act: timed out after 1s in Around, Stuck: it is still running", 0, 0},
		{"a condition", all(never, stuck), "condition ready: boom; Act: timed out after 1s in Stuck: it is still running", 0, 0},
		{"another timeout", all(ctrlkit.Timeout(time.Millisecond, heeding("Heeds")), stuck),
			"Heeds: timed out after 1ms: context deadline exceeded; Act: timed out after 1s in Stuck: it is still running", 0, 0},
		{"in the grace", all(slowly("Slow", ctrlkit.TimeoutGrace/2)), "Slow: boom", 0, 0},
		{"success in the grace", all(ctrlkit.Finally(poll, ctrlkit.Nop()), slowly("Slow", ctrlkit.TimeoutGrace/2), ctrlkit.Sequential(nap("Nap"), stuck)), "Slow: boom; Act: timed out after 1s in Slow, Stuck: it is still running", 5 * time.Second, 0},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			release = make(chan struct{})
			defer close(release)
			result, err := ctrlkit.Timeout(time.Second, tt.action).Run(t.Context())
			if got := strings.Replace(text(err), tt.action.Description(), "Act", 1); got != tt.want || result.RequeueAfter != tt.after || len(ctrlkit.Waits(err)) != tt.waits {
				t.Errorf("got %v after %s with %d waits, want %s after %s with %d", err, result.RequeueAfter, len(ctrlkit.Waits(err)), tt.want, tt.after, tt.waits)
			}
			if isTerminal(err) {
				t.Error("the time that was over is not terminal")
			}
			checkTimeoutError(t, err, strings.Contains(tt.want, "Stuck"))
		})
	}
}

// checkTimeoutError checks that a TimeoutError in err, if there is one, contains its cause, and
// whether it reports an action as still running.
func checkTimeoutError(t *testing.T, err error, stillRunning bool) {
	t.Helper()
	var timeout *ctrlkit.TimeoutError
	if !errors.As(err, &timeout) {
		return
	}
	if !strings.Contains(timeout.Error(), text(timeout.Err)) {
		t.Errorf("%q does not say %q", timeout, timeout.Err)
	}
	same(t, "is something still running", stillRunning, errors.Is(err, ctrlkit.ErrStillRunning))
}

// flakyAction returns an action under a Retry that succeeds at every third attempt.
func flakyAction() ctrlkit.Action {
	tries := 0
	return ctrlkit.Retry(wait.Backoff{Duration: time.Millisecond, Steps: 3}, ctrlkit.NewAction("Flaky", func(context.Context) (ctrl.Result, error) {
		if tries++; tries%3 != 0 {
			return ctrlkit.RequeueIfError(errBoom)
		}
		return ctrlkit.NoRequeue()
	}))
}

// around returns an action that runs a and wraps its error.
func around(a ctrlkit.Action) ctrlkit.Action {
	return ctrlkit.NewAction("Around", func(ctx context.Context) (ctrl.Result, error) {
		result, err := a.Run(ctx)
		if err != nil {
			err = fmt.Errorf("around: %w", err)
		}
		return result, err
	})
}

// slowly returns an action that fails that long after the end of its context.
func slowly(name string, late time.Duration) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(ctx context.Context) (ctrl.Result, error) {
		<-ctx.Done()
		<-time.After(late)
		return ctrlkit.RequeueIfError(errBoom)
	})
}

// Two Timeouts around the same action never have it run twice at once: the second waits for the
// first.
func TestEqualActionsUnderTimeoutsDoNotOverlap(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	for _, tt := range []struct {
		name   string
		option ctrlkit.ActionOption
		around func(ctrlkit.Action) ctrlkit.Action
		want   int32
	}{
		{"the same work", ctrlkit.WithObject(pod), func(a ctrlkit.Action) ctrlkit.Action { return a }, 1},
		{"the same work inside an action", ctrlkit.WithObject(pod), func(a ctrlkit.Action) ctrlkit.Action { return ctrlkit.NewAction("Outer", a.Run) }, 1},
		{"other work", ctrlkit.WithHook(nil), func(a ctrlkit.Action) ctrlkit.Action { return a }, 2},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			var now, most, runs atomic.Int32
			work := func() ctrlkit.Action {
				return ctrlkit.NewAction("Work", func(context.Context) (ctrl.Result, error) {
					runs.Add(1)
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					<-time.After(time.Second)
					return ctrlkit.NoRequeue()
				}, tt.option)
			}
			w := tt.around(ctrlkit.ParallelJoin(ctrlkit.Timeout(3*time.Second, work()), ctrlkit.Timeout(3*time.Second, work())))
			if _, err := w.Run(t.Context()); err != nil || runs.Load() != 2 || most.Load() != tt.want {
				t.Errorf("%d runs, %d of them at once, with error %v, want 2 and %d", runs.Load(), most.Load(), err, tt.want)
			}
		})
	}
}

func TestOneActionUnderTimeoutsDoesNotOverlapItself(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	runInBubble(t, "the first does not end", func(t *testing.T) {
		release := make(chan struct{})
		var most atomic.Int32
		a := deaf("A", release, &most)
		_, err := ctrlkit.ParallelJoin(ctrlkit.Timeout(time.Second, a), ctrlkit.Timeout(2*time.Second, a)).Run(t.Context())
		if want := "A: timed out after 1s in A: it is still running"; err == nil || most.Load() != 1 || !errors.Is(err, ctrlkit.ErrStillRunning) {
			t.Errorf("%d at once with %v, want 1 and %s", most.Load(), err, want)
		}
		close(release)
		synctest.Wait()
		if _, err := a.Run(t.Context()); err != nil {
			t.Errorf("after it has ended: %v", err)
		}
	})
	runInBubble(t, "inside itself", func(t *testing.T) {
		inner := ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }, ctrlkit.WithObject(pod))
		outer := ctrlkit.NewAction("A", ctrlkit.Timeout(time.Second, inner).Run, ctrlkit.WithObject(pod))
		if _, err := ctrlkit.Timeout(time.Second, outer).Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	runInBubble(t, "in two reconciles", func(t *testing.T) {
		var started sync.WaitGroup
		started.Add(2)
		w := ctrlkit.Timeout(time.Second, ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) {
			started.Done()
			started.Wait() // for the other one
			return ctrlkit.NoRequeue()
		}))
		var reconciles sync.WaitGroup
		for range 2 {
			reconciles.Go(func() {
				if _, err := w.Run(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		reconciles.Wait()
	})
}

func TestTimeoutWithoutTimeStartsNothing(t *testing.T) {
	var j journal
	_, err := ctrlkit.Timeout(0, j.ok("A")).Run(background())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	j.want(t)
}

func TestTimeoutReturnsWhenTheRunIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := ctrlkit.Timeout(time.Hour, deaf("A", release, new(atomic.Int32))).Run(ctx)
		if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.Canceled alone", err)
		}
	})
}

// The action of an earlier reconcile still runs: the workflow of the next one, built anew, must not
// start it again.
func TestAbandonedActionNeverRunsTwiceAtOnce(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "2"}}
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var most atomic.Int32
		build := func(obj *corev1.Pod) ctrlkit.Action { return deaf("A", release, &most, ctrlkit.WithObject(obj)) }

		_, err := ctrlkit.Timeout(time.Second, build(pod)).Run(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if _, err := build(pod).Run(t.Context()); !errors.Is(err, ctrlkit.ErrStillRunning) {
			t.Errorf("got %v, want ErrStillRunning", err)
		}
		begin := time.Now()
		_, err = ctrlkit.Timeout(time.Second, build(pod)).Run(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("got %v after %s, want a timeout after 1s", err, time.Since(begin))
		}
		ran := make(chan error)
		go func() {
			_, err := ctrlkit.Timeout(time.Second, build(other)).Run(t.Context())
			ran <- err
		}()
		synctest.Wait() // the other object's action is running
		same(t, "runs for one object at once", 1, most.Load())
		close(release)
		if err := <-ran; err != nil {
			t.Errorf("the action of another object: %v", err)
		}
		synctest.Wait()
		if _, err := build(pod).Run(t.Context()); err != nil {
			t.Errorf("after the abandoned run has ended: %v", err)
		}
	})
}

// With a deadline the next run waits for the abandoned one, so that an action which was only a
// little late is not an error.
func TestNextRunAwaitsTheAbandonedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var most atomic.Int32
		a := deaf("A", release, &most)
		time.AfterFunc(1500*time.Millisecond, func() { close(release) })
		w := ctrlkit.Timeout(time.Second, a)
		if _, err := w.Run(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if _, err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		same(t, "runs at once", 1, most.Load())
	})
}

func TestAbandonedSequenceStartsNothingFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		release := make(chan struct{})
		_, err := ctrlkit.Timeout(time.Second, ctrlkit.Sequential(deaf("A", release, new(atomic.Int32)), j.ok("B"))).Run(t.Context())
		if err == nil {
			t.Error("want a timeout")
		}
		close(release)
		synctest.Wait()
		j.want(t)
	})
}

// The tail of a Finally begins after its Timeout has returned: nothing waits for it either, and it
// must not run twice at once.
func TestTailThatBeginsAfterTheTimeoutNeverRunsTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		releaseBody, releaseTail := make(chan struct{}), make(chan struct{})
		tail := deaf("Tail", releaseTail, new(atomic.Int32))
		w := ctrlkit.Timeout(time.Second, ctrlkit.Finally(deaf("Body", releaseBody, new(atomic.Int32)), tail))
		if _, err := w.Run(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		close(releaseBody)
		synctest.Wait() // the tail is running
		if _, err := tail.Run(t.Context()); !errors.Is(err, ctrlkit.ErrStillRunning) {
			t.Errorf("got %v, want ErrStillRunning", err)
		}
		close(releaseTail)
		synctest.Wait()
		if _, err := tail.Run(t.Context()); err != nil {
			t.Errorf("after the tail has ended: %v", err)
		}
	})
}

func TestNestedTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a := deaf("A", release, new(atomic.Int32))
		_, err := ctrlkit.Timeout(time.Second, ctrlkit.Timeout(time.Hour, a)).Run(t.Context())
		if got, want := text(err), "Timeout(1h0m0s, A): timed out after 1s in A: A: given up: context deadline exceeded"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, err := a.Run(t.Context()); !errors.Is(err, ctrlkit.ErrStillRunning) {
			t.Errorf("got %v, want ErrStillRunning", err)
		}
		close(release)
		synctest.Wait()
	})
}

// nap returns an action that takes half a second.
func nap(name string) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) {
		<-time.After(500 * time.Millisecond)
		return ctrlkit.NoRequeue()
	})
}

type foreignAction struct{ inner ctrlkit.Action }

func (foreignAction) Description() string                            { return "foreign" }
func (f foreignAction) Run(ctx context.Context) (ctrl.Result, error) { return f.inner.Run(ctx) }
