// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
)

// A marked error is still the error that it is.
func TestMarkedErrorsAreSeenThrough(t *testing.T) {
	inner := &fs.PathError{Op: "open", Path: "db", Err: fs.ErrNotExist}
	err := fmt.Errorf("a: %w", failure.Mark(fmt.Errorf("b: %w", failure.Mark(inner, failure.WithClass(failure.ClassTerminal))), failure.WithReason("Gone")))
	if got, want := err.Error(), "a: b: open db: "+fs.ErrNotExist.Error(); got != want {
		t.Errorf("got text %q, want %q", got, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("errors.Is does not see through it")
	}
	if found := (*fs.PathError)(nil); !errors.As(err, &found) || found != inner {
		t.Errorf("errors.As finds %v, want %v", found, inner)
	}
	if !apierrors.IsConflict(failure.Mark(apierrors.NewConflict(secrets, "db", errBoom))) {
		t.Error("the helpers of Kubernetes do not see through it")
	}
	if failure.Mark(nil, failure.WithClass(failure.ClassTerminal)) != nil {
		t.Error("nil has become an error")
	}
}

func TestOptions(t *testing.T) {
	missing := apierrors.NewNotFound(secrets, "db")
	plain := failure.Classify(missing)
	forbidden := failure.Classify(apierrors.NewForbidden(secrets, "db", errBoom))
	change := func(v failure.Classification, f func(*failure.Classification)) failure.Classification {
		f(&v)
		return v
	}
	for _, tt := range []struct {
		name string
		err  error
		want failure.Classification
	}{
		{"none", failure.Mark(missing), plain},
		{"a class", failure.Mark(missing, failure.WithClass(failure.ClassForbidden)), forbidden},
		{"a severity", failure.Mark(missing, failure.WithSeverity(condition.SeverityInfo)), change(plain, func(v *failure.Classification) { v.Severity = condition.SeverityInfo })},
		{"a reason", failure.Mark(missing, failure.WithReason("NoSecret")), change(plain, func(v *failure.Classification) { v.Reason = "NoSecret" })},
		{"a remedy", failure.Mark(missing, failure.WithRemedy("make it")), change(plain, func(v *failure.Classification) { v.Remedy = "make it" })},
		{"a time", failure.Mark(missing, failure.WithRetryAfter(time.Hour)), change(plain, func(v *failure.Classification) { v.RetryAfter = time.Hour })},
		{"the longest delay", failure.Mark(missing, failure.WithBackoff(failure.Backoff{Max: time.Second})), change(plain, func(v *failure.Classification) { v.Backoff.Max = time.Second })},
		{"the later option", failure.Mark(missing, failure.WithReason("A"), failure.WithReason("B")),
			change(plain, func(v *failure.Classification) { v.Reason = "B" })},
		{"what an inner error says is kept, unless an outer one says it anew",
			failure.Mark(fmt.Errorf("a: %w", failure.Mark(missing, failure.WithClass(failure.ClassForbidden), failure.WithReason("A"), failure.WithRemedy("w"))), failure.WithReason("B")),
			change(forbidden, func(v *failure.Classification) { v.Reason, v.Remedy = "B", "w" })},
		{"what one of several joined errors says is not about the whole",
			failure.Mark(errors.Join(failure.Mark(errBoom, failure.WithReason("A"), failure.WithSeverity(condition.SeverityInfo)), missing), failure.WithRemedy("w")),
			change(plain, func(v *failure.Classification) { v.Remedy, v.Backoff.Initial = "w", 100*time.Millisecond })},
		{"about a terminal error", failure.Mark(reconcile.TerminalError(missing), failure.WithReason("A")),
			change(failure.Classify(reconcile.TerminalError(missing)), func(v *failure.Classification) { v.Reason = "A" })},
		{"inside a terminal error", reconcile.TerminalError(failure.Mark(errors.Join(missing, errBoom), failure.WithReason("A"))),
			change(failure.Classify(reconcile.TerminalError(missing)), func(v *failure.Classification) { v.Reason = "A" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, err := range []error{tt.err, fmt.Errorf("around: %w", tt.err), errors.Join(tt.err)} {
				same(t, "failure.Classify", tt.want, failure.Classify(err))
			}
		})
	}
}

// A reason that comes from another API never is one that a condition can't have.
func TestReasons(t *testing.T) {
	for _, tt := range []struct{ name, reason, want string }{
		{"a reason", "QuotaExceeded", "QuotaExceeded"},
		{"everything that it may have", "A_b,c:D9_", "A_b,c:D9_"},
		{"an error code", "InvalidParameter.Value", "InvalidParameterValue"},
		{"words", "quota exceeded!", "quotaexceeded"},
		{"a number first", "404 Not Found", "NotFound"},
		{"a colon last", "Quota:", "Quota"},
		{"nothing", "", "NotFound"},
		{"nothing that it may have", "404: ü", "NotFound"},
		{"too long", strings.Repeat("a", 1030), strings.Repeat("a", 1024)},
		{"too long, and cut at a colon", strings.Repeat("a", 1023) + ":b", strings.Repeat("a", 1023)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := failure.Mark(apierrors.NewNotFound(secrets, "db"), failure.WithReason(tt.reason))
			same(t, "", tt.want, failure.Classify(err).Reason)
		})
	}
}

func TestMistakesOfTheCaller(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func()
		want string
	}{
		{"a class that is none", func() { failure.WithClass("Nonsense") }, "there is no class Nonsense"},
		{"no class", func() { failure.WithClass("") }, "there is no class"},
		{"no severity", func() { failure.WithSeverity(0) }, "there is no severity 0"},
		{"a severity that is none", func() { failure.WithSeverity(4) }, "there is no severity 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, tt.want) {
					t.Errorf("got panic %q, want %q", got, tt.want)
				}
			}()
			tt.do()
		})
	}
}

// same checks that got is want. What says of what, and may be empty in a test that checks one thing.
func same[T any](t rapid.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A text has the remedies that its causes were given, each once, and not those of classes.
func TestAppendRemedy(t *testing.T) {
	marked := failure.Mark(errors.New("a"), failure.WithRemedy("make it"), failure.WithReason("A"))
	for want, err := range map[string]error{
		"a; make it":        marked,
		"doing: a; make it": fmt.Errorf("doing: %w", failure.AppendRemedy(marked)),
		"b":                 errors.New("b"),
		"a; make it; b":     errors.Join(marked, errors.New("b")),
	} {
		got := failure.AppendRemedy(err)
		if got.Error() != want || failure.AppendRemedy(got).Error() != want || failure.Classify(got).Reason != failure.Classify(err).Reason {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := failure.AppendRemedy(nil); err != nil {
		t.Error(err)
	}
}
