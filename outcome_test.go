// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Result.Requeue is deprecated: it is never set, and honored when an action returns it.

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

func TestIgnoreExit(t *testing.T) {
	wait := ctrlkit.Wait("a Secret")
	continued := ctrlkit.RequeueWithin(time.Second)
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"nothing", nil, ""},
		{"an exit", ctrlkit.ErrExit, ""},
		{"a wrapped exit", fmt.Errorf("syncing: %w", ctrlkit.ErrExit), ""},
		{"a wait", wait, ""},
		{"a wrapped wait", fmt.Errorf("syncing: %w", wait), ""},
		{"a mark to continue", continued, ""},
		{"an error", errBoom, "boom"},
		{"an exit beside an error", errors.Join(ctrlkit.ErrExit, errBoom), "boom"},
		{"a wait beside two errors", errors.Join(errBoom, wait, errors.New("bang")), "boom; bang"},
		{"only exits, joined", errors.Join(ctrlkit.ErrExit, wait, fmt.Errorf("x: %w", ctrlkit.ErrExit)), ""},
		{"deep", errors.Join(errors.Join(ctrlkit.ErrExit, wait), &ctrlkit.ActionError{Action: "A", Err: errors.Join(wait, errBoom)}), "A: boom"},
		{"an error that wraps both is kept whole", fmt.Errorf("syncing: %w", errors.Join(errBoom, wait)), "syncing: boom\nwaiting for a Secret"},
		{"an aggregate, which is a slice", utilerrors.NewAggregate([]error{errBoom, errBoom}), "boom"},
		{"two aggregates", errors.Join(utilerrors.NewAggregate([]error{errBoom}), utilerrors.NewAggregate([]error{errBoom}), wait), "boom; boom"},
		{"two %w", fmt.Errorf("a: %w, b: %w", ctrlkit.ErrExit, wait), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ctrlkit.IgnoreExit(ctrl.Result{RequeueAfter: 5}, tt.err)
			same(t, "error", tt.want, text(err))
			same(t, "requeued after", 5, got.RequeueAfter)
		})
	}
}

// An error in words that wraps several is one failure: it is kept with its text and its type, or
// dropped with them.
func TestIgnoreExitKeepsErrorsOfOthersWhole(t *testing.T) {
	wait := ctrlkit.Wait("a Secret")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"a sentence with an exit", fmt.Errorf("bucket %s: %w (%w)", "b", errBoom, ctrlkit.ErrExit), "bucket b: boom (exit)"},
		{"of an action", &ctrlkit.ActionError{Action: "A", Err: fmt.Errorf("%w (%w)", errBoom, wait)}, "A: boom (waiting for a Secret)"},
		{"beside a wait", errors.Join(wait, fmt.Errorf("%w (%w)", errBoom, ctrlkit.ErrExit)), "boom (exit)"},
		{"a type of its own", &several{[]error{errBoom, ctrlkit.ErrExit}}, "2 problems"},
		{"an aggregate", utilerrors.NewAggregate([]error{errBoom, ctrlkit.ErrExit}), "[boom, exit]"},
		{"a type that wraps nothing", &several{[]error{nil}}, "1 problems"},
		{"a type that wraps signals alone", &several{[]error{wait, ctrlkit.ErrExit, nil}}, ""},
		{"an aggregate of signals alone", utilerrors.NewAggregate([]error{wait, ctrlkit.ErrExit}), ""},
		{"a type that is an exit", exitError{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ctrlkit.IgnoreExit(ctrl.Result{}, tt.err)
			same(t, "error", tt.want, text(err))
			if errors.Is(tt.err, errBoom) && !errors.Is(err, errBoom) {
				t.Error("errors.Is does not find a cause")
			}
			var before, after *several
			if errors.As(tt.err, &before) && tt.want != "" && (!errors.As(err, &after) || after != before) {
				t.Error("errors.As does not find the type")
			}
		})
	}
}

type several struct{ errs []error }

func (s *several) Error() string   { return fmt.Sprintf("%d problems", len(s.errs)) }
func (s *several) Unwrap() []error { return s.errs }

type exitError struct{}

func (exitError) Error() string        { return "exit of its own" }
func (exitError) Is(target error) bool { return target == ctrlkit.ErrExit }

func TestIgnoreExitNeverRequeuesLater(t *testing.T) {
	for _, tt := range []struct{ in, want ctrl.Result }{
		{ctrl.Result{RequeueAfter: -time.Second}, ctrl.Result{RequeueAfter: 1}},
		{ctrl.Result{Requeue: true}, ctrl.Result{Requeue: true}},
		// controller-runtime would use the hour alone.
		{ctrl.Result{Requeue: true, RequeueAfter: time.Hour}, ctrl.Result{RequeueAfter: time.Second}},
		{ctrl.Result{Requeue: true, RequeueAfter: time.Millisecond}, ctrl.Result{RequeueAfter: time.Millisecond}},
	} {
		got, err := ctrlkit.IgnoreExit(tt.in, nil)
		same(t, "result", tt.want, got)
		must(t, err)
	}
}

func TestRequeueAtOnceIsNotLost(t *testing.T) {
	for name, run := range map[string]func() (ctrl.Result, error){
		"RequeueImmediately": ctrlkit.RequeueImmediately,
		"RequeueAfter":       func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(-time.Minute) },
		"Poll":               func() (ctrl.Result, error) { return ctrlkit.IgnoreExit(ctrl.Result{}, ctrlkit.Poll("x", 0)) },
		"RequeueWithin":      func() (ctrl.Result, error) { return ctrlkit.IgnoreExit(ctrl.Result{}, ctrlkit.RequeueWithin(0)) },
	} {
		got, _ := run()
		if got.RequeueAfter <= 0 || got.RequeueAfter > time.Millisecond || got.Requeue {
			t.Errorf("%s: got %+v, want a time that controller-runtime takes for now", name, got)
		}
	}
}

func TestWaits(t *testing.T) {
	w := ctrlkit.Join(
		ctrlkit.NewAction("Secret", func(context.Context) (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("Secret default/db") }),
		ctrlkit.NewAction("Bucket", func(context.Context) (ctrl.Result, error) {
			return ctrl.Result{}, fmt.Errorf("looking: %w", ctrlkit.Poll("the bucket", time.Minute))
		}),
		ctrlkit.NewAction("Fails", func(context.Context) (ctrl.Result, error) { return ctrlkit.RequeueIfError(errBoom) }),
	)
	result, err := w.Run(background())
	want := []ctrlkit.Waiting{{Action: "Secret", For: "Secret default/db"}, {Action: "Bucket", For: "the bucket", Every: time.Minute}}
	same(t, "waits", want, ctrlkit.Waits(err))
	same(t, "requeued after", time.Minute, result.RequeueAfter)
	if _, err := ctrlkit.IgnoreExit(result, err); text(err) != "Fails: boom" {
		t.Errorf("got %v, want the real error alone", err)
	}
	if ctrlkit.Waits(nil) != nil || ctrlkit.Waits(errBoom) != nil {
		t.Error("there is nothing to wait for")
	}
}

// same checks that got is want. What says of what, and may be empty in a test that checks one thing.
func same[T any](t testing.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func runInBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// An outcome that travels as one error is the same outcome again where it is needed.
func TestAsError(t *testing.T) {
	outcomes := map[string]func() (ctrl.Result, error){
		"nothing":      ctrlkit.NoRequeue,
		"an error":     func() (ctrl.Result, error) { return ctrl.Result{}, errBoom },
		"an exit":      ctrlkit.Exit,
		"a wait":       func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("x") },
		"a poll":       func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Poll("x", time.Hour) },
		"a time":       func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(time.Minute) },
		"a backoff":    ctrlkit.RequeueWithBackoff,
		"a time later": func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.RequeueWithin(time.Minute) },
		"a priority":   func() (ctrl.Result, error) { return ctrl.Result{Priority: new(3)}, nil },
		"a time beside an error": func() (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: time.Second}, errBoom
		},
		"two times": func() (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: time.Hour}, errors.Join(ctrlkit.RequeueWithin(time.Minute), ctrlkit.Wait("y"))
		},
	}
	for name, outcome := range outcomes {
		t.Run(name, func(t *testing.T) {
			follows := func(run func() (ctrl.Result, error)) (texts []string, result ctrl.Result) {
				did := ""
				result, err := ctrlkit.Sequential(
					ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) { return run() }),
					ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { did = "B"; return ctrlkit.NoRequeue() }),
				).Run(t.Context())
				waits := ctrlkit.Waits(err)
				result, err = ctrlkit.IgnoreExit(result, err)
				return []string{did, fmt.Sprint(waits), text(err)}, result
			}
			want, wantResult := follows(outcome)
			got, gotResult := follows(func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.AsError(outcome()) })
			same(t, "outcome", want, got)
			same(t, "result", wantResult, gotResult)
			same(t, "interrupts", want[0] == "", got[0] == "")
		})
	}
}
