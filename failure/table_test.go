// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
)

var (
	errBoom = errors.New("boom")
	secrets = schema.GroupResource{Resource: "secrets"}
	secret  = schema.GroupKind{Kind: "Secret"}
	refused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
)

// known are errors of all classes, as they are really made.
var known = []struct {
	name  string
	err   error
	class failure.Class
}{
	{"the operator stops", context.Canceled, failure.ClassCanceled},
	{"another client was first", apierrors.NewConflict(secrets, "db", errBoom), failure.ClassConflict},
	{"another client owns a field", apierrors.NewApplyConflict([]metav1.StatusCause{{Field: ".spec"}}, "conflict"), failure.ClassConflict},
	{"too many requests", apierrors.NewTooManyRequests("slow down", 0), failure.ClassThrottled},
	{"too many requests, without details", apierrors.NewTooManyRequestsError("slow down"), failure.ClassThrottled},
	{"too many requests, from a proxy", apierrors.NewGenericServerResponse(429, "get", secrets, "db", "", 0, true), failure.ClassThrottled},
	{"unknown", errBoom, failure.ClassTransient},
	{"a deadline", context.DeadlineExceeded, failure.ClassTransient},
	{"a refused connection", refused, failure.ClassTransient},
	{"an internal error", apierrors.NewInternalError(errBoom), failure.ClassTransient},
	{"an unavailable server", apierrors.NewServiceUnavailable("starting"), failure.ClassTransient},
	{"a timeout of the server", apierrors.NewTimeoutError("slow", 1), failure.ClassTransient},
	{"a timeout of another server", apierrors.NewServerTimeout(secrets, "get", 1), failure.ClassTransient},
	{"something that is there already", apierrors.NewAlreadyExists(secrets, "db"), failure.ClassTransient},
	{"a list that has expired", apierrors.NewResourceExpired("too old"), failure.ClassTransient},
	{"a missing object", apierrors.NewNotFound(secrets, "db"), failure.ClassNotFound},
	{"an object that has gone", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}}, failure.ClassNotFound},
	{"a missing kind", &meta.NoKindMatchError{GroupKind: secret}, failure.ClassNotFound},
	{"a missing resource", &meta.NoResourceMatchError{PartialResource: secrets.WithVersion("v1")}, failure.ClassNotFound},
	{"forbidden", apierrors.NewForbidden(secrets, "db", errBoom), failure.ClassForbidden},
	{"unauthorized", apierrors.NewUnauthorized("who?"), failure.ClassForbidden},
	{"invalid", apierrors.NewInvalid(secret, "db", field.ErrorList{field.Required(field.NewPath("data"), "")}), failure.ClassInvalid},
	{"a bad request", apierrors.NewBadRequest("what?"), failure.ClassInvalid},
	{"a method that is not supported", apierrors.NewMethodNotSupported(secrets, "create"), failure.ClassInvalid},
	{"too large for etcd", apierrors.NewInternalError(errors.New("etcdserver: request is too large")), failure.ClassInvalid},
	{"another failure of etcd", apierrors.NewInternalError(errors.New("etcdserver: request timed out")), failure.ClassTransient},
	{"too large", apierrors.NewRequestEntityTooLargeError("3 MiB"), failure.ClassInvalid},
	{"terminal", reconcile.TerminalError(errBoom), failure.ClassTerminal},
	{"terminal about something that passes", reconcile.TerminalError(apierrors.NewConflict(secrets, "db", errBoom)), failure.ClassTerminal},
	{"terminal about nothing", reconcile.TerminalError(nil), failure.ClassTerminal},
	{"a panic", &ctrlkit.PanicError{Value: "boom"}, failure.ClassPanic},
	{"a panic with an error", &ctrlkit.PanicError{Value: apierrors.NewConflict(secrets, "db", errBoom)}, failure.ClassPanic},
	{"a panic with several errors", &ctrlkit.PanicError{Value: errors.Join(context.Canceled, errBoom)}, failure.ClassPanic},
	{"terminal about several errors", reconcile.TerminalError(errors.Join(context.Canceled, errBoom)), failure.ClassTerminal},
}

// Each class is seen in each error, however it is wrapped.
func TestClasses(t *testing.T) {
	wraps := []struct {
		name string
		wrap func(error) error
	}{
		{"plain", func(err error) error { return err }},
		{"wrapped", func(err error) error { return fmt.Errorf("reading: %w", err) }},
		{"of an action", func(err error) error { return &ctrlkit.ActionError{Action: "Read", Err: err} }},
		{"joined", func(err error) error { return errors.Join(err) }},
		{"joined twice", func(err error) error { return fmt.Errorf("reading: %w", errors.Join(errors.Join(err, err), err)) }},
		{"an aggregate", func(err error) error { return fmt.Errorf("reading: %w", utilerrors.NewAggregate([]error{err, err})) }},
		{"two in a sentence", func(err error) error { return fmt.Errorf("first %w, then %w", err, err) }},
		{"marked, without an option", func(err error) error { return failure.Mark(err) }},
		{"marked, and joined", func(err error) error { return failure.Mark(errors.Join(err, err), failure.WithRemedy("wait")) }},
		{"joined beside a conflict", func(err error) error {
			if errors.Is(err, context.Canceled) {
				return err
			}
			return errors.Join(apierrors.NewConflict(secrets, "db", errBoom), err)
		}},
		{"in a sentence after a name", func(err error) error { return fmt.Errorf("%w: %w", errSync, err) }},
		{"in a sentence after names", func(err error) error {
			return fmt.Errorf("a: %w", fmt.Errorf("%w, %w: %w", errSync, nameError("b"), err))
		}},
		{"beside what a workflow waits for", func(err error) error {
			return outcome(ctrlkit.Join(action(err), ctrlkit.NewAction("Wait", func(context.Context) (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("it") })))
		}},
		{"joined beside the end of the operator", func(err error) error { return errors.Join(context.Canceled, err) }},
	}
	for _, tt := range known {
		for _, w := range wraps {
			t.Run(tt.name+"/"+w.name, func(t *testing.T) {
				v := failure.Classify(w.wrap(tt.err))
				same(t, "Class", tt.class, v.Class)
				if v.Reason != string(tt.class) || v.Severity == 0 || v.Remedy == "" || v.Backoff.Initial <= 0 || v.Backoff.Max < v.Backoff.Initial {
					t.Errorf("the classification is not complete: %+v", v)
				}
			})
		}
	}
}

var errSync = errors.New("syncing the bucket")

type nameError string

func (e nameError) Error() string { return string(e) }

// action returns an action that ends with err, and outcome what a reconciler returns of it.
func action(err error) ctrlkit.Action {
	return ctrlkit.NewAction("Act", func(context.Context) (ctrl.Result, error) { return ctrlkit.RequeueIfError(err) })
}

func outcome(a ctrlkit.Action) error {
	_, err := ctrlkit.IgnoreExit(a.Run(context.Background()))
	return err
}

// A workflow hides from controller-runtime that an error is terminal if another action wants to be
// retried. The table sees it all the same, and how soon the other wants it.
func TestTerminalErrorOfAWorkflow(t *testing.T) {
	err := outcome(ctrlkit.Join(action(reconcile.TerminalError(errBoom)), action(apierrors.NewConflict(secrets, "db", errBoom))))
	if errors.Is(err, reconcile.TerminalError(nil)) {
		t.Error("controller-runtime would drop the request")
	}
	if v := failure.Classify(err); v.Class != failure.ClassTerminal || v.Backoff.Initial != 20*time.Millisecond {
		t.Errorf("got %s after %v, want %s after 20ms", v.Class, v.Backoff.Initial, failure.ClassTerminal)
	}
}

func TestNoError(t *testing.T) {
	same(t, "classification of no error", failure.Classification{}, failure.Classify(nil))
	if got := failure.Causes(nil); got != nil {
		t.Errorf("causes of no error: %v", got)
	}
}

// Only what a person must clear is an error, and only that makes an object Stalled.
func TestSeverities(t *testing.T) {
	want := map[failure.Class]condition.Severity{
		failure.ClassCanceled: condition.SeverityInfo, failure.ClassConflict: condition.SeverityInfo, failure.ClassThrottled: condition.SeverityInfo,
		failure.ClassTransient: condition.SeverityWarning, failure.ClassNotFound: condition.SeverityWarning,
		failure.ClassForbidden: condition.SeverityError, failure.ClassInvalid: condition.SeverityError, failure.ClassTerminal: condition.SeverityError, failure.ClassPanic: condition.SeverityError,
	}
	for _, tt := range known {
		same(t, "Classify.Severity", want[tt.class], failure.Classify(tt.err).Severity)
	}
}

// Of several errors the worst counts, and the soonest time.
func TestJoinedErrors(t *testing.T) {
	var (
		throttled = func(seconds int) error { return apierrors.NewTooManyRequests("slow down", seconds) }
		forbidden = apierrors.NewForbidden(secrets, "db", errBoom)
		conflict  = apierrors.NewConflict(secrets, "db", errBoom)
		missing   = apierrors.NewNotFound(secrets, "db")
		terminal  = reconcile.TerminalError(errBoom)
	)
	for _, tt := range []struct {
		name  string
		errs  []error
		class failure.Class
		first time.Duration
		most  time.Duration
		after time.Duration
	}{
		{"a conflict and the end", []error{conflict, context.Canceled}, failure.ClassConflict, 20 * time.Millisecond, time.Second, 0},
		{"throttled beside a conflict", []error{conflict, throttled(0)}, failure.ClassThrottled, 20 * time.Millisecond, 30 * time.Second, 0},
		{"what passes and what does not", []error{errBoom, forbidden}, failure.ClassForbidden, 100 * time.Millisecond, 5 * time.Minute, 0},
		{"what does not and what passes", []error{forbidden, errBoom}, failure.ClassForbidden, 100 * time.Millisecond, 5 * time.Minute, 0},
		{"the first of those that are equally bad", []error{missing, errBoom}, failure.ClassNotFound, 100 * time.Millisecond, 5 * time.Minute, 0},
		{"three", []error{conflict, terminal, errBoom}, failure.ClassTerminal, 20 * time.Millisecond, 30 * time.Second, 0},
		{"throttled twice", []error{throttled(7), throttled(5), throttled(9)}, failure.ClassThrottled, 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{"throttled, and what may be tried sooner", []error{throttled(7), errBoom}, failure.ClassTransient, 100 * time.Millisecond, 7 * time.Second, 0},
		{"throttled, and what wants to be tried later", []error{throttled(7), terminal}, failure.ClassTerminal, 7 * time.Second, 7 * time.Second, 0},
		{"throttled, and another server says nothing", []error{throttled(7), throttled(0)}, failure.ClassThrottled, time.Second, 7 * time.Second, 0},
		{"a conflict with a mark", []error{failure.Mark(conflict, failure.WithSeverity(condition.SeverityError)), errBoom},
			failure.ClassConflict, 20 * time.Millisecond, 30 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := failure.Classify(errors.Join(tt.errs...))
			same(t, "Class", tt.class, v.Class)
			if want := (failure.Backoff{Initial: tt.first, Max: tt.most}); v.Backoff != want || v.RetryAfter != tt.after {
				t.Errorf("got backoff %v and %v, want %v and %v", v.Backoff, v.RetryAfter, want, tt.after)
			}
		})
	}
}

// The classification of several errors never has a longer delay than one of them, is never less
// bad, and does not depend on how they are joined. Their order decides only which of several that
// are equally bad gives its name.
func TestJoiningIsAnAlgebra(t *testing.T) {
	errs := rapid.Custom(func(t *rapid.T) error {
		err := rapid.SampledFrom(known).Draw(t, "error").err
		if after := rapid.IntRange(0, 3).Draw(t, "seconds"); after > 0 {
			err = failure.Mark(err, failure.WithRetryAfter(time.Duration(after)*time.Second))
		}
		return err
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := errs.Draw(t, "a"), errs.Draw(t, "b"), errs.Draw(t, "c")
		left, right := failure.Classify(errors.Join(errors.Join(a, b), c)), failure.Classify(errors.Join(a, errors.Join(b, c)))
		same(t, "joined otherwise", left, right)
		there, back := failure.Classify(errors.Join(a, b)), failure.Classify(errors.Join(b, a))
		if there.Severity != back.Severity || there.Backoff != back.Backoff || there.RetryAfter != back.RetryAfter || there.Silent(1) != back.Silent(1) {
			t.Errorf("it depends on the order:\n%+v\n%+v", there, back)
		}
		for _, single := range []error{a, b} {
			v := failure.Classify(single)
			if there.Severity < v.Severity {
				t.Errorf("together they are less bad, %v, than one of them, %v", there.Severity, v.Severity)
			}
			if v.RetryAfter > 0 {
				v.Backoff = failure.Backoff{Initial: v.RetryAfter, Max: v.RetryAfter}
			}
			if there.Backoff.Initial > v.Backoff.Initial || there.Backoff.Max > v.Backoff.Max || there.RetryAfter > v.Backoff.Max {
				t.Errorf("together they are tried later, %+v, than one of them, %+v", there, v)
			}
		}
	})
}

func TestCauses(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	wrapped := fmt.Errorf("doing: %w", a)
	terminal := fmt.Errorf("doing: %w", reconcile.TerminalError(errors.Join(a, b)))
	panicked := &ctrlkit.PanicError{Value: errors.Join(a, b)}
	marked := fmt.Errorf("doing: %w", failure.Mark(errors.Join(a, b)))
	for _, tt := range []struct {
		name string
		err  error
		want []error
	}{
		{"one", a, []error{a}},
		{"a wrapped one", wrapped, []error{wrapped}},
		{"two", errors.Join(a, wrapped), []error{a, wrapped}},
		{"joined twice", fmt.Errorf("doing: %w", errors.Join(a, errors.Join(b, fmt.Errorf("also: %w", errors.Join(c))))), []error{a, b, c}},
		{"an aggregate", fmt.Errorf("doing: %w", utilerrors.NewAggregate([]error{a, errors.Join(b, c)})), []error{a, b, c}},
		{"an aggregate with a terminal error", utilerrors.NewAggregate([]error{terminal, c}), []error{terminal, c}},
		{"a terminal error about two", terminal, []error{terminal}},
		{"a panic with two", panicked, []error{panicked}},
		{"two that were marked together", marked, []error{marked}},
		{"one of two was marked", errors.Join(marked, c), []error{marked, c}},
		{"an error that joins nothing", empty{}, []error{empty{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := failure.Causes(tt.err)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// An empty error could join others.
type empty struct{}

func (empty) Error() string   { return "nothing" }
func (empty) Unwrap() []error { return []error{nil} }

// A conflict is not reported until it persists, and a canceled reconcile never is.
func TestSilent(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		loud int // the first of 20 failures in a row that is reported; 0 if none is
	}{
		{"no error", nil, 0},
		{"the operator stops", context.Canceled, 0},
		{"a conflict", apierrors.NewConflict(secrets, "db", errBoom), 6},
		{"a conflict and the end", errors.Join(context.Canceled, apierrors.NewConflict(secrets, "db", errBoom)), 6},
		{"a conflict and something else", errors.Join(apierrors.NewConflict(secrets, "db", errBoom), errBoom), 1},
		{"a conflict and something else, each with the name of what was done", errors.Join(
			fmt.Errorf("%w: %w", errSync, apierrors.NewConflict(secrets, "db", errBoom)), fmt.Errorf("%w: %w", errSync, errBoom)), 1},
		{"a conflict under a name", fmt.Errorf("%w: %w", errSync, apierrors.NewConflict(secrets, "db", errBoom)), 6},
		{"a conflict under a name, wrapped", fmt.Errorf("a: %w", &ctrlkit.ActionError{
			Action: "Sync", Err: fmt.Errorf("%w: %w", nameError("syncing"), apierrors.NewConflict(secrets, "db", errBoom))}), 6},
		{"a conflict under the end", fmt.Errorf("%w: %w", context.Canceled, apierrors.NewConflict(secrets, "db", errBoom)), 6},
		{"a conflict, and then a failure", fmt.Errorf("%w, and undoing it: %w", apierrors.NewConflict(secrets, "db", errBoom), errBoom), 1},
		{"a failure of the network, and then a conflict", fmt.Errorf("%w, and then %w", io.EOF, apierrors.NewConflict(secrets, "db", errBoom)), 1},
		{"a failure that wraps another, and then a conflict", fmt.Errorf("%w, and then %w",
			fmt.Errorf("creating: %w", errBoom), apierrors.NewConflict(secrets, "db", errBoom)), 1},
		{"a name alone", fmt.Errorf("%w: %w", errSync, errBoom), 1},
		{"throttled", apierrors.NewTooManyRequests("slow down", 1), 1},
		{"unknown", errBoom, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, loud := failure.Classify(tt.err), 0
			for failures := 20; failures > 0; failures-- {
				if !v.Silent(failures) {
					loud = failures
				} else if loud > 0 {
					break
				}
			}
			same(t, "loud after failures", tt.loud, loud)
		})
	}
}

func TestDelay(t *testing.T) {
	b := failure.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}
	for _, tt := range []struct {
		name     string
		backoff  failure.Backoff
		failures int
		want     time.Duration
	}{
		{"the first", b, 1, 100 * time.Millisecond},
		{"none counts as one", b, 0, 100 * time.Millisecond},
		{"less than none", b, -5, 100 * time.Millisecond},
		{"the second", b, 2, 200 * time.Millisecond},
		{"the fourth", b, 4, 800 * time.Millisecond},
		{"the fifth is capped", b, 5, time.Second},
		{"the thousandth", b, 1000, time.Second},
		{"more than a float can double", b, 1 << 40, time.Second},
		{"no first", failure.Backoff{Max: time.Second}, 1 << 40, 0},
		{"a first that is more than the most", failure.Backoff{Initial: time.Minute, Max: time.Second}, 1, time.Second},
		{"nothing", failure.Backoff{}, 3, 0},
		{"less than nothing", failure.Backoff{Initial: -time.Hour, Max: time.Second}, 3, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shortest, longest := time.Duration(1<<62), time.Duration(0)
			for range 1000 {
				d := tt.backoff.Delay(tt.failures)
				shortest, longest = min(shortest, d), max(longest, d)
			}
			if shortest < tt.want || longest > tt.want+tt.want/10 {
				t.Errorf("got %v to %v, want %v and at most a tenth more", shortest, longest, tt.want)
			}
			if tt.want > 0 && longest-shortest < tt.want/20 {
				t.Errorf("got %v to %v: what failed together comes back together", shortest, longest)
			}
		})
	}
}

func TestRetryAfterOfServers(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"it says when", apierrors.NewTooManyRequests("slow down", 7), 7 * time.Second},
		{"it says when, wrapped", fmt.Errorf("reading: %w", apierrors.NewTooManyRequests("slow down", 7)), 7 * time.Second},
		{"it does not say", apierrors.NewTooManyRequestsError("slow down"), 0},
		{"a server that is down doubles the time instead", apierrors.NewServerTimeout(secrets, "get", 7), 0},
		{"we know better", failure.Mark(apierrors.NewTooManyRequests("slow down", 7), failure.WithRetryAfter(time.Hour)), time.Hour},
		{"we know better, and wrap it", fmt.Errorf("a: %w", failure.Mark(apierrors.NewTooManyRequests("slow down", 7), failure.WithRetryAfter(time.Hour))), time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			same(t, "", tt.want, failure.Classify(tt.err).RetryAfter)
		})
	}
}

// A classifier of one's own is asked before all else, about each error of the chain.
func TestClassify(t *testing.T) {
	table := failure.Table{ClassOf: func(err error) (failure.Class, bool) {
		switch err { //nolint:errorlint // the table walks the chain
		case errBoom:
			return failure.ClassInvalid, true
		case io.EOF:
			return "Nonsense", true
		}
		return "", false
	}}
	for _, tt := range []struct {
		name   string
		err    error
		class  failure.Class
		reason string
	}{
		{"known", errBoom, failure.ClassInvalid, "Invalid"},
		{"known, wrapped", fmt.Errorf("a: %w", fmt.Errorf("b: %w", errBoom)), failure.ClassInvalid, "Invalid"},
		{"known, joined", errors.Join(context.Canceled, fmt.Errorf("a: %w", errBoom)), failure.ClassInvalid, "Invalid"},
		{"not known", apierrors.NewNotFound(secrets, "db"), failure.ClassNotFound, "NotFound"},
		{"of a class that is none", io.EOF, failure.ClassTransient, "TemporaryError"},
		{"known, but marked otherwise", failure.Mark(errBoom, failure.WithClass(failure.ClassForbidden)), failure.ClassInvalid, "Invalid"},
		{"known, with more to say", failure.Mark(errBoom, failure.WithReason("Quota")), failure.ClassInvalid, "Quota"},
		{"known, and first in a sentence", fmt.Errorf("%w: %w", errBoom, apierrors.NewConflict(secrets, "db", io.EOF)), failure.ClassInvalid, "Invalid"},
		{"known, and terminal", reconcile.TerminalError(errBoom), failure.ClassInvalid, "Invalid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if v := table.Classify(tt.err); v.Class != tt.class || v.Reason != tt.reason {
				t.Errorf("got %s (%s), want %s (%s)", v.Class, v.Reason, tt.class, tt.reason)
			}
		})
	}
}

func TestBackoffsOfOnesOwn(t *testing.T) {
	for _, tt := range []struct {
		name      string
		own, want failure.Backoff
	}{
		{"both", failure.Backoff{Initial: time.Minute, Max: time.Hour}, failure.Backoff{Initial: time.Minute, Max: time.Hour}},
		{"nothing", failure.Backoff{}, failure.Backoff{Initial: 100 * time.Millisecond, Max: 5 * time.Minute}},
		{"the first", failure.Backoff{Initial: time.Second}, failure.Backoff{Initial: time.Second, Max: 5 * time.Minute}},
		{"a late first", failure.Backoff{Initial: time.Hour}, failure.Backoff{Initial: time.Hour, Max: time.Hour}},
		{"the most", failure.Backoff{Max: time.Second}, failure.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := failure.Table{Backoffs: map[failure.Class]failure.Backoff{failure.ClassTransient: tt.own}}
			same(t, "", tt.want, table.Classify(errBoom).Backoff)
			if got, want := table.Classify(context.Canceled), failure.Classify(context.Canceled); got != want {
				t.Errorf("another class has %v, want %v", got, want)
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"unavailable", apierrors.NewServiceUnavailable("starting"), true},
		{"a timeout of the server", apierrors.NewTimeoutError("slow", 1), true},
		{"a timeout of another server", apierrors.NewServerTimeout(secrets, "get", 1), true},
		{"refused", refused, true},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		{"ended", io.EOF, true},
		{"cut", io.ErrUnexpectedEOF, true},
		{"a timeout of the network", &net.DNSError{IsTimeout: true}, true},
		{"a name that is not known", &net.DNSError{IsNotFound: true}, false},
		{"a deadline", context.DeadlineExceeded, true},
		{"canceled", context.Canceled, false},
		{"not found", apierrors.NewNotFound(secrets, "db"), false},
		{"unknown", errBoom, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, err := range []error{tt.err, errors.Join(errBoom, tt.err)} {
				same(t, fmt.Sprint(err), tt.want, failure.IsUnavailable(err))
			}
		})
	}
}

// What is too large has a remedy of its own; what is invalid has that of its class.
func TestRemedyOfWhatIsTooLarge(t *testing.T) {
	for _, err := range []error{apierrors.NewRequestEntityTooLargeError("3 MiB"), apierrors.NewInternalError(errors.New("etcdserver: request is too large"))} {
		if got := failure.Classify(fmt.Errorf("writing: %w", err)).Remedy; !strings.HasPrefix(got, "make what is written smaller") {
			t.Errorf("%v: the remedy is %q", err, got)
		}
	}
	same(t, "the remedy", failure.RemedyOf(failure.ClassInvalid), failure.Classify(apierrors.NewBadRequest("no")).Remedy)
}
