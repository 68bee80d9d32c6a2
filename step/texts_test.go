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

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/rings"
)

// An error whose text changes at each try makes no write at each try.
func TestNoStatusStorm(t *testing.T) {
	rings.Test(t, "takes seconds")
	t.Parallel()
	// words is a source of random words that is the same in each run of the test.
	seed := uint32(1)
	word := func() string {
		letters := make([]byte, 8)
		for i := range letters {
			seed = seed*1664525 + 1013904223
			letters[i] = 'a' + byte(seed>>24)%26
		}
		return string(letters)
	}
	texts := map[string]func(i int) string{
		"numbers": func(i int) string { return fmt.Sprintf("request %d failed after %v", i, time.Duration(i)) },
		"words":   func(int) string { return "the server says " + word() + " " + word() },
	}
	dos := map[string]func(req *request, text string) (ctrl.Result, error){
		"error": func(_ *request, text string) (ctrl.Result, error) {
			return ctrl.Result{}, errors.New(text)
		},
		"condition and error": func(req *request, text string) (ctrl.Result, error) {
			req.Conditions.MarkUnhealthy("Found", condition.SeverityWarning, "Failing", text)
			return ctrl.Result{}, errors.New(text)
		},
		"several errors": func(_ *request, text string) (ctrl.Result, error) {
			return ctrl.Result{}, errors.Join(errors.New(text), errFirst)
		},
	}
	for textName, text := range texts {
		for doName, do := range dos {
			runInBubble(t, doName+" with "+textName, func(t *testing.T) {
				w := newWorld(t, newThing())
				options := w.options()
				options.Observers = nil
				i := 0
				w.engineWith(options, keeping("A", func(_ context.Context, req *request) (ctrl.Result, error) {
					i++
					return do(req, text(i))
				}, "Found"))
				reconciles, writes := 300, 0
				if textName == "words" && doName == "error" {
					reconciles = 10000
				}
				for range reconciles {
					w.fails()
					if len(w.writes) != writes { // from then on the cache has it; to ask the fake client each time takes its time
						writes = len(w.writes)
						w.cache[thingRequest.NamespacedName] = w.thing()
					}
					pass(10 * time.Millisecond)
				}
				if got := len(w.takeWrites()); got == 0 || got > 4 {
					t.Errorf("%d writes in %d reconciles", got, reconciles)
				}
				if got := len(w.takeEvents()); got == 0 || got > 4 {
					t.Errorf("%d events in %d reconciles", got, reconciles)
				}
			})
		}
	}
}

// That texts are held does not hide that something else is wrong now, or that the text is old.
func TestHeldTexts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var err error
		w.engine(doing("A", func(context.Context, *request) (ctrl.Result, error) { return ctrl.Result{}, err }))
		ready := func(next error) string {
			err = next
			_, _ = w.reconcile()
			return w.conditionOf(condition.Ready)
		}
		for _, step := range []struct {
			after time.Duration
			err   error
			want  string
		}{
			{0, errFirst, "False TemporaryError: A: the first thing broke"},
			{time.Second, errSecond, "False TemporaryError: A: the second thing broke"},
			{time.Second, errThird, "False TemporaryError: A: the second thing broke"},
			{10 * time.Minute, errThird, "False TemporaryError: A: the third thing broke"},
			{time.Second, failure.Mark(errFirst, failure.WithReason("Quota")), "False Quota: A: the first thing broke"},
			{time.Second, nil, "True Ready"},
		} {
			pass(step.after)
			same(t, "", step.want, ready(step.err))
		}
	})
}

// What only a person can clear is written at once, so that clearing one failure shows the next, but
// not without end.
func TestHeldTextsOfTerminalFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var remaining int
		w.engine(doing("A", func(context.Context, *request) (ctrl.Result, error) {
			names := strings.Repeat("x", remaining) // not a number, of which changes are held
			return ctrl.Result{}, failure.Mark(errors.New("in the way: "+names), failure.WithClass(failure.ClassTerminal))
		}))
		written := func() bool {
			pass(time.Second)
			_, _ = w.reconcile()
			return w.conditionOf(condition.Ready) == "False TerminalError: A: in the way: "+strings.Repeat("x", remaining)
		}
		for remaining = 10; remaining > 4; remaining-- {
			if !written() {
				t.Errorf("with %d objects in the way: %s", remaining, w.conditionOf(condition.Ready))
			}
		}
		if written() {
			t.Error("a text that always changes is always written")
		}
		pass(10 * time.Minute)
		if !written() {
			t.Errorf("later: %s", w.conditionOf(condition.Ready))
		}
	})
}

func TestOneEventPerTransition(t *testing.T) {
	w := newWorld(t, newThing())
	var do doFunc
	w.engine(keeping("A", func(ctx context.Context, req *request) (ctrl.Result, error) { return do(ctx, req) }, "Found"))
	unhealthy := func(severity condition.Severity, reason string) doFunc {
		return does(func(_ context.Context, req *request) {
			req.Conditions.MarkUnhealthy("Found", severity, reason, "there is no Secret")
		})
	}
	healthy := does(func(_ context.Context, req *request) { req.Conditions.MarkHealthy("Found", "Found", "") })
	for _, test := range []struct {
		name string
		do   doFunc
		want []string
	}{
		{"it begins well", healthy, nil},
		{"a condition becomes unhealthy", unhealthy(condition.SeverityWarning, "NotFound"), []string{"NotFound: there is no Secret"}},
		{"it stays unhealthy", unhealthy(condition.SeverityWarning, "NotFound"), nil},
		{"for another reason", unhealthy(condition.SeverityWarning, "Empty"), []string{"Empty: there is no Secret"}},
		{"something worse besides", func(ctx context.Context, req *request) (ctrl.Result, error) {
			_, _ = unhealthy(condition.SeverityWarning, "Empty")(ctx, req)
			return ctrl.Result{}, forbiddenError()
		}, []string{`Forbidden: A: things.test.example.com "a" is forbidden: no permission (and 1 more)`}},
		{"what is worse is over", unhealthy(condition.SeverityWarning, "Empty"), nil},
		{"it is on its way", unhealthy(condition.SeverityInfo, "Pending"), nil},
		{"it becomes healthy", healthy, nil},
		{"an error", func(ctx context.Context, req *request) (ctrl.Result, error) {
			_, _ = healthy(ctx, req)
			return ctrl.Result{}, errFirst
		}, []string{"TemporaryError: A: the first thing broke"}},
		{"the error stays", failsWith(errFirst), nil},
		{"a wait is none", func(ctx context.Context, req *request) (ctrl.Result, error) {
			_, _ = healthy(ctx, req)
			return ctrlkit.WaitFor("the bucket")
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			do = test.do
			_, _ = w.reconcile()
			same(t, "events", test.want, w.takeEvents(), cmpopts.EquateEmpty())
		})
	}
}

func TestNoEventForWhatWasNotWritten(t *testing.T) {
	w := newWorld(t, newThing())
	w.fault = failOn("patch status", conflictError())
	w.engine(doing("A", failsWith(errFirst)))
	w.fails()
	w.said()
	w.fault = nil
	w.fails()
	w.said("TemporaryError: A: the first thing broke")
}

// A new text that is due is written, also when the conditions are computed a second time because
// something could not be saved. Of two failures of the same severity the first is reported.
func TestANewTextBesideAFailureToSave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		w.fault = failOn("patch Thing", errThird)
		err := errFirst
		w.engine(doing("A", func(_ context.Context, req *request) (ctrl.Result, error) {
			metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "size", "7")
			return ctrl.Result{}, err
		}))
		w.fails()
		pass(11 * time.Minute)
		err = errSecond
		w.fails()
		want := "False TemporaryError: A: the second thing broke"
		w.is(condition.Ready, want)
	})
}
