// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Result.Requeue is deprecated: it is honored when an action returns it.

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ctrlkit/ctrlkit"
)

var errTerminal = reconcile.TerminalError(errors.New("no such region"))

func isTerminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }

// returns is an action that ends with what outcome returns.
func returns(name string, outcome func() (ctrl.Result, error)) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return outcome() })
}

func fails(name string, err error) ctrlkit.Action {
	return returns(name, func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(err) })
}

func TestTerminalErrorSilencesNothing(t *testing.T) {
	gone := fails("Gone", errTerminal)
	poll := func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Poll("the bucket", time.Second) }
	wait := func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("a Secret") }
	later := func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(time.Minute) }
	within := func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.RequeueWithin(time.Minute) }
	blocking := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) { g.Add(ctrlkit.Nop(), g.Add(gone)) })
	for _, tt := range []struct {
		name    string
		action  ctrlkit.Action
		dropped bool
	}{
		{"alone", gone, true},
		{"wrapped", fails("A", fmt.Errorf("creating: %w", errTerminal)), true},
		{"beside success", ctrlkit.Join(gone, ctrlkit.Nop()), true},
		{"beside another", ctrlkit.Join(gone, fails("B", errTerminal)), true},
		{"beside an exit", ctrlkit.Join(gone, returns("B", ctrlkit.Exit)), true},
		{"beside what it blocks", blocking, true},
		{"two in one error", fails("A", errors.Join(errTerminal, errTerminal)), true},
		{"a failure that is called terminal", fails("A", fmt.Errorf("%w: %w", errBoom, errTerminal)), true},

		{"beside a retryable error", ctrlkit.Join(gone, fails("B", errBoom)), false},
		{"beside a retryable error, one level up", ctrlkit.Join(ctrlkit.Join(gone), ctrlkit.Sequential(fails("B", errBoom))), false},
		{"before a tail that fails", ctrlkit.Finally(gone, fails("B", errBoom)), false},
		{"beside a wait", ctrlkit.Join(gone, returns("B", wait)), false},
		{"beside a poll", ctrlkit.Join(gone, returns("B", poll)), false},
		{"beside a time", ctrlkit.Join(gone, returns("B", later)), false},
		{"after a time that does not interrupt", ctrlkit.Sequential(returns("B", within), gone), false},
		{"beside what is not started", ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			g.Add(gone)
			g.Add(fails("B", errBoom))
			g.Add(returns("C", wait))
		}), false},
		{"beside a requeue with backoff", ctrlkit.Join(gone, returns("B", ctrlkit.RequeueWithBackoff)), false},
		{"with a time of its own", returns("A", func() (ctrl.Result, error) { return ctrl.Result{RequeueAfter: time.Minute}, errTerminal }), false},
		{"in a list of the action", fails("A", errors.Join(errTerminal, errBoom)), false},
		{"in a wrapped list of the action", fails("A", fmt.Errorf("all: %w", errors.Join(errTerminal, errBoom))), false},
		{"in an aggregate of the action", fails("A", utilerrors.NewAggregate([]error{errTerminal, errBoom})), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result, err := tt.action.Run(background())
			root, rootErr := ctrlkit.IgnoreExit(result, err)
			if got := isTerminal(rootErr); got != tt.dropped || !errors.Is(rootErr, errTerminal) {
				t.Errorf("controller-runtime drops the request: got %t, want %t, by the error %v", got, tt.dropped, rootErr)
			}
			same(t, "result at the root", result, root)
			if _, again := ctrlkit.IgnoreExit(root, rootErr); isTerminal(again) != tt.dropped || again.Error() != rootErr.Error() {
				t.Errorf("a second time it is %v", again)
			}
		})
	}
}

// The joined error itself does not pass for terminal either, for code that checks it before
// IgnoreExit, and keeps all else.
func TestJoinedTerminalErrorIsFound(t *testing.T) {
	other := reconcile.TerminalError(errBoom)
	quota := &quotaError{}
	_, err := ctrlkit.Join(fails("A", fmt.Errorf("in A: %w", errTerminal)), fails("B", reconcile.TerminalError(quota)), fails("C", errBoom)).Run(background())
	if isTerminal(err) {
		t.Error("the joined error is terminal")
	}
	if !errors.Is(err, errTerminal) || errors.Is(err, other) {
		t.Error("errors.Is confuses two terminal errors")
	}
	if found := (*quotaError)(nil); !errors.As(err, &found) || found != quota {
		t.Error("errors.As does not find what a terminal error wraps")
	}
	if got, want := text(err), "A: in A: terminal error: no such region; B: terminal error: quota; C: boom"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type quotaError struct{}

func (*quotaError) Error() string { return "quota" }

// requeued reports whether controller-runtime reconciles again by itself after an outcome.
func requeued(result ctrl.Result, err error) bool {
	if err != nil {
		return !isTerminal(err)
	}
	return result.RequeueAfter > 0 || result.Requeue
}

// What is requeued alone is requeued in company.
func TestJoinNeverLosesARequeue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actions := rapid.SliceOfN(outcomes(), 1, 5).Draw(t, "actions")
		wants := false
		for _, a := range actions {
			wants = wants || requeued(ctrlkit.IgnoreExit(a.Run(background())))
		}
		cut := rapid.IntRange(0, len(actions)).Draw(t, "cut")
		for _, w := range []ctrlkit.Action{
			ctrlkit.Join(actions...),
			ctrlkit.Join(ctrlkit.Join(actions[:cut]...), ctrlkit.ParallelJoin(actions[cut:]...)),
			ctrlkit.Finally(ctrlkit.Join(actions[:cut]...), ctrlkit.Join(actions[cut:]...)),
		} {
			if result, err := ctrlkit.IgnoreExit(w.Run(background())); wants && !requeued(result, err) {
				t.Errorf("%s ends with %v, %v: the requeue is missing", w.Description(), result, err)
			}
		}
	})
}

// A real controller reconciles as often with a terminal error beside it as without.
func TestControllerIsNotSilenced(t *testing.T) {
	gone := fails("Gone", errTerminal)
	transient := fails("Fails", errBoom)
	poll := returns("Poll", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Poll("the bucket", 100*time.Millisecond) })
	backoff := func(most time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, most)
	}
	for _, tt := range []struct {
		name     string
		action   ctrlkit.Action
		longest  time.Duration // of the backoff
		min, max int           // reconciles in two seconds
	}{
		{"terminal", gone, time.Minute, 1, 1},
		{"transient", transient, time.Minute, 9, 9},
		{"transient and terminal", ctrlkit.Join(transient, gone), time.Minute, 9, 9},
		{"a requeue with backoff", returns("Again", ctrlkit.RequeueWithBackoff), time.Minute, 9, 9},
		{"a requeue with backoff and a terminal error", ctrlkit.Join(gone, returns("Again", ctrlkit.RequeueWithBackoff)), time.Minute, 9, 9},
		{"a poll", poll, time.Minute, 20, 21},
		{"a poll and a terminal error", ctrlkit.Join(poll, gone), time.Minute, 9, 9},
		{"a poll and a terminal error, as often as the poll wants", ctrlkit.Join(poll, gone), 100 * time.Millisecond, 20, 30},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			reconciles := 0
			c, err := controller.NewTypedUnmanaged("test", controller.TypedOptions[reconcile.Request]{
				LogConstructor:     func(*reconcile.Request) logr.Logger { return logr.Discard() },
				RateLimiter:        backoff(tt.longest),
				UsePriorityQueue:   new(false),
				SkipNameValidation: new(true),
				Reconciler: reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
					reconciles++
					return ctrlkit.IgnoreExit(tt.action.Run(ctx))
				}),
			})
			must(t, err)
			err = c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
				queue.Add(reconcile.Request{})
				return nil
			}))
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			must(t, c.Start(ctx))
			if reconciles < tt.min || reconciles > tt.max {
				t.Errorf("%d reconciles in two seconds, want %d to %d", reconciles, tt.min, tt.max)
			}
		})
	}
}
