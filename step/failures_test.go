// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

func TestPanicIsAFailure(t *testing.T) {
	errBug := errors.New("a bug")
	gone := func(*request) bool { panic(errBug) }
	tests := []struct {
		name string
		obj  *Thing
		bad  step.Step[*Thing]
	}{
		{"in Do", newThing(), doing("P", panics(errBug))},
		{"in Cleanup", deletedThing(finalizer), cleaning("P", passes, panics(errBug))},
		{"in Post", newThing(), step.Step[*Thing]{Name: "P", Post: panics(errBug)}},
		{"in the condition of When", newThing(), step.When("gone", gone, doing("W", passes))},
		{"in the condition of When around a Cleaner", newThing(), step.When("gone", gone, cleaning("W", passes, passes))},
		{"in the function that builds a workflow", newThing(), step.Step[*Thing]{Name: "W", Do: step.Workflow(func(*request) ctrlkit.Action { panic(errBug) })}},
		{"on a goroutine of a workflow", newThing(), step.Step[*Thing]{Name: "W", Do: step.Workflow(func(*request) ctrlkit.Action {
			return ctrlkit.ParallelJoin(ctrlkit.NewAction("bad", func(context.Context) (ctrl.Result, error) { panic(errBug) }))
		})}},
		{"setting what is not declared", newThing(), doing("C", does(func(_ context.Context, req *request) {
			defer func() { _ = recover(); panic(errBug) }()
			req.Conditions.MarkHealthy("Undeclared", "Fine", "")
		}))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.obj)
			var log []string
			w.engine(test.bad, full(&log, "A", passes, passes, nil))
			err := w.fails()
			var panicked *ctrlkit.PanicError
			if !errors.As(err, &panicked) {
				t.Fatalf("got %v, want a PanicError", err)
			}
			if !strings.Contains(string(panicked.Stack), "failures_test.go") {
				t.Errorf("the stack does not name the place:\n%s", panicked.Stack)
			}
			if !errors.Is(err, errBug) {
				t.Errorf("what was passed to panic is not in the error: %v", err)
			}
			if len(log) == 0 || log[len(log)-1] != "Post A" {
				t.Errorf("calls: got %v, want Post A at the end", log)
			}
			w.begins(condition.Ready, "False Panic: ")
			w.begins(condition.Stalled, "True Panic")
		})
	}
}

func TestBackoffIsThatOfTheClass(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want time.Duration // of the first try; up to a tenth comes on top
	}{
		{"transient", errFirst, 100 * time.Millisecond},
		{"forbidden", forbiddenError(), 5 * time.Second},
		{"terminal", reconcile.TerminalError(errFirst), time.Minute},
		{"asked for", failure.Mark(errFirst, failure.WithRetryAfter(42*time.Second)), 42 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			e := w.engine(doing("A", failsWith(test.err)))
			w.fails()
			got := e.Limiter().When(thingRequest)
			if got < test.want || got > test.want*11/10 {
				t.Errorf("the next try waits %v, want %v", got, test.want)
			}
			requeued := recorded[journal.Requeued](w)
			if len(requeued) != 1 || requeued[0].After != got || requeued[0].Failures != 1 {
				t.Errorf("the journal says %+v", requeued)
			}
		})
	}
}

// A time that one step requests is kept beside the failure of another: the next try comes at the
// earlier of the two.
func TestRequestedTimeBesideAFailure(t *testing.T) {
	requests := func(d time.Duration) doFunc {
		return func(context.Context, *request) error { return ctrlkit.RequeueWithin(d) }
	}
	polls := func(d time.Duration) doFunc {
		return func(context.Context, *request) error {
			return ctrlkit.Poll("a system", d)
		}
	}
	tests := []struct {
		name  string
		steps []step.Step[*Thing]
		want  time.Duration // up to a tenth comes on top of a backoff
		why   string
	}{
		{"a poll before a terminal failure", []step.Step[*Thing]{doing("A", requests(20*time.Second)), doing("B", failsWith(reconcile.TerminalError(errFirst)))}, 20 * time.Second, "time"},
		{"a wait beside a failure, in a group", []step.Step[*Thing]{step.Group("G", doing("A", polls(2*time.Second)), doing("B", failsWith(forbiddenError())))}, 2 * time.Second, "time"},
		{"a backoff before the poll", []step.Step[*Thing]{doing("A", requests(20*time.Second)), doing("B", failsWith(forbiddenError()))}, 5 * time.Second, "backoff"},
		{"a conflict", []step.Step[*Thing]{doing("A", requests(time.Millisecond)), doing("B", failsWith(conflictError()))}, time.Millisecond, "time"},
		{"no time", []step.Step[*Thing]{doing("A", passes), doing("B", failsWith(forbiddenError()))}, 5 * time.Second, "backoff"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			e := w.engine(test.steps...)
			result, err := w.reconcile()
			got := result.RequeueAfter
			if err != nil {
				got = e.Limiter().When(thingRequest)
			}
			if got < test.want || got > test.want*11/10 {
				t.Errorf("the next try waits %v, want %v", got, test.want)
			}
			if requeued := recorded[journal.Requeued](w); len(requeued) != 1 || requeued[0].After != got || requeued[0].Why != test.why {
				t.Errorf("the journal says %+v", requeued)
			}
		})
	}
}

func TestSuccessForgetsFailures(t *testing.T) {
	w := newWorld(t, newThing())
	var err error
	e := w.engine(doing("A", func(context.Context, *request) error { return err }))
	for err = errFirst; e.Limiter().NumRequeues(thingRequest) < 3; {
		w.fails()
	}
	err = nil
	w.must()
	same(t, "failures", 0, e.Limiter().NumRequeues(thingRequest))
}

// controller-runtime drops what it finds to be terminal. The engine tries it again, slowly.
func TestTerminalErrorsAreTriedAgain(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(doing("A", failsWith(reconcile.TerminalError(fmt.Errorf("quota: %w", errFirst)))))
	err := w.fails()
	if errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("%v is terminal for controller-runtime", err)
	}
	if action := (*ctrlkit.ActionError)(nil); !errors.Is(err, errFirst) || !errors.As(err, &action) {
		t.Errorf("%v does not show what it is made of", err)
	}
	w.begins(condition.Stalled, "True TerminalError: ")
}

func panics(value any) doFunc {
	return func(context.Context, *request) error { panic(value) }
}

// What is wrong with an observer, or with the table of failures, does not keep the engine from saving.
func TestPanicsBesideTheSteps(t *testing.T) {
	for name, test := range map[string]struct {
		change func(o *step.Options[*Thing])
		ready  string
	}{
		"an observer": {func(o *step.Options[*Thing]) { o.Observers = append([]journal.Observer{panicking{}}, o.Observers...) },
			"False TemporaryError: Work: no luck"},
		"the table of failures": {func(o *step.Options[*Thing]) {
			o.Failures.ClassOf = func(error) (failure.Class, bool) { panic("a table of none") }
		}, "False Panic: Work: no luck"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newThing())
			options := w.options()
			test.change(&options)
			w.engineWith(options, doing("Work", failsWith(errors.New("no luck"))))
			w.fails()
			same(t, "Ready", test.ready, w.conditionOf(condition.Ready))
			same(t, "the last result", journal.ResultFailed, w.lastResult())
		})
	}
}

// A panicking observer has a bug.
type panicking struct{}

func (panicking) Observe(context.Context, journal.Entry) { panic("an observer of none") }
