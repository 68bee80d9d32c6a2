package ctrlkit_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// deaf returns an action that ignores its context until release is closed, and counts how many of its runs overlap.
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
	if got != want || text(err) != "A: boom" {
		t.Errorf("got %v and %v", got, err)
	}
}

func TestTimeoutReturnsAtItsDeadline(t *testing.T) {
	for _, tt := range []struct {
		name    string
		action  func(release <-chan struct{}) ctrlkit.Action
		want    string
		running []string
	}{
		{"deaf", func(r <-chan struct{}) ctrlkit.Action { return deaf("A", r, new(atomic.Int32)) }, "A: timed out after 5s", []string{"A"}},
		{"heeding", func(<-chan struct{}) ctrlkit.Action { return heeding("A") }, "A: timed out after 5s", []string{"A"}},
		{"inside a sequence", func(r <-chan struct{}) ctrlkit.Action {
			return ctrlkit.Sequential(ctrlkit.Nop(), deaf("A", r, new(atomic.Int32)), deaf("B", r, new(atomic.Int32)))
		}, "Sequential(Nop, A, B): timed out after 5s in A", []string{"A"}},
		{"heeding inside a sequence", func(<-chan struct{}) ctrlkit.Action {
			return ctrlkit.Sequential(heeding("A"), heeding("B"))
		}, "Sequential(A, B): timed out after 5s in A", []string{"A"}},
		{"of another type", func(r <-chan struct{}) ctrlkit.Action { return foreignAction{deaf("A", r, new(atomic.Int32))} },
			"foreign: timed out after 5s in foreign, A", []string{"foreign", "A"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				begin := time.Now()
				_, err := ctrlkit.Timeout(5*time.Second, tt.action(release)).Run(t.Context())
				if took := time.Since(begin); took != 5*time.Second {
					t.Errorf("took %s", took)
				}
				var timeout *ctrlkit.TimeoutError
				if !errors.As(err, &timeout) || !errors.Is(err, context.DeadlineExceeded) || text(err) != tt.want {
					t.Fatalf("got error %v, want %s", err, tt.want)
				}
				if !slices.Equal(timeout.Running, tt.running) {
					t.Errorf("running: got %v, want %v", timeout.Running, tt.running)
				}
			})
		})
	}
}

func TestTimeoutWithoutTimeStartsNothing(t *testing.T) {
	var j journal
	_, err := ctrlkit.Timeout(0, j.ok("A")).Run(background())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	j.want(t)
}

func TestTimeoutReturnsWhenTheRunIsCancelled(t *testing.T) {
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

// The action of an earlier reconcile still runs: the workflow of the next one, built anew, must not start it again.
func TestAbandonedActionNeverRunsTwiceAtOnce(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "2"}}
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var most atomic.Int32
		build := func(obj *corev1.Pod) ctrlkit.Action { return deaf("A", release, &most, ctrlkit.ForObject(obj)) }

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
		if n := most.Load(); n != 1 {
			t.Errorf("%d runs for one object at once", n)
		}
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

// With a deadline the next run waits for the abandoned one, so that an action which was only a little late is not an error.
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
		if most.Load() != 1 {
			t.Errorf("%d runs at once", most.Load())
		}
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

// The tail of a Finally begins after its Timeout has returned: nobody waits for it either, and it must not run twice at once.
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
		if got, want := text(err), "Timeout(1h0m0s, A): timed out after 1s in A"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, err := a.Run(t.Context()); !errors.Is(err, ctrlkit.ErrStillRunning) {
			t.Errorf("got %v, want ErrStillRunning", err)
		}
		close(release)
		synctest.Wait()
	})
}

type foreignAction struct{ inner ctrlkit.Action }

func (foreignAction) Description() string                            { return "foreign" }
func (f foreignAction) Run(ctx context.Context) (ctrl.Result, error) { return f.inner.Run(ctx) }
