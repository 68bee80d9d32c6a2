// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Result.Requeue is deprecated: it is honored when an action or a step returns it.

package outcome_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
)

type sut = outcome.Outcome[string]

var results = rapid.Custom(func(t *rapid.T) reconcile.Result {
	result := reconcile.Result{
		Requeue:      rapid.Bool().Draw(t, "requeue"),
		RequeueAfter: time.Duration(rapid.IntRange(-2, 3).Draw(t, "seconds")) * time.Second,
	}
	if rapid.Bool().Draw(t, "has priority") {
		priority := rapid.IntRange(-2, 2).Draw(t, "priority")
		result.Priority = &priority
	}
	return result
})

var outcomes = rapid.Custom(func(t *rapid.T) sut {
	o := sut{
		Result:      results.Draw(t, "result"),
		Waits:       rapid.SliceOfN(rapid.StringMatching(`[a-z]{2}`), 0, 3).Draw(t, "waits"),
		Interrupted: rapid.Bool().Draw(t, "interrupted"),
	}
	for i, text := range rapid.SliceOfN(rapid.StringMatching(`[A-Z]{2}`), 0, 3).Draw(t, "causes") {
		o.Causes = append(o.Causes, fmt.Errorf("%s %d", text, i))
	}
	return o
})

// value is an outcome that can be compared.
type value struct {
	Requeue, Interrupted bool
	After                time.Duration
	Priority             string
	Causes, Waits        []string
}

func valueOf(o sut) value {
	v := value{Requeue: o.Result.Requeue, Interrupted: o.Interrupted, After: o.Result.RequeueAfter, Waits: slices.Clone(o.Waits)}
	if o.Result.Priority != nil {
		v.Priority = fmt.Sprint(*o.Result.Priority)
	}
	for _, cause := range o.Causes {
		v.Causes = append(v.Causes, cause.Error())
	}
	if len(v.Waits) == 0 {
		v.Waits = nil
	}
	return v
}

func (v value) sorted() value {
	slices.Sort(v.Causes)
	slices.Sort(v.Waits)
	return v
}

func TestJoinIsAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := outcomes.Draw(t, "a"), outcomes.Draw(t, "b"), outcomes.Draw(t, "c")
		if diff := cmp.Diff(valueOf(a.Join(b).Join(c)), valueOf(a.Join(b.Join(c)))); diff != "" {
			t.Errorf("(-left first +right first):\n%s", diff)
		}
	})
}

func TestJoinIsCommutativeButForTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := outcomes.Draw(t, "a"), outcomes.Draw(t, "b")
		if diff := cmp.Diff(valueOf(a.Join(b)).sorted(), valueOf(b.Join(a)).sorted()); diff != "" {
			t.Errorf("(-a, b +b, a):\n%s", diff)
		}
	})
}

func TestZeroIsTheIdentityOfJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := outcomes.Draw(t, "a")
		want := valueOf(a)
		if want.After < 0 {
			want.After = outcome.Immediately
		}
		if diff := cmp.Diff(want, valueOf(a.Join(sut{}))); diff != "" {
			t.Errorf("a, zero (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, valueOf(sut{}.Join(a))); diff != "" {
			t.Errorf("zero, a (-want +got):\n%s", diff)
		}
	})
}

func TestJoinLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := outcomes.Draw(t, "a"), outcomes.Draw(t, "b")
		all := a.Join(b)
		for _, part := range []sut{a, b} {
			for _, cause := range part.Causes {
				if !errors.Is(all.Err(), cause) {
					t.Errorf("%v is not in %v", cause, all.Err())
				}
			}
			for _, wait := range part.Waits {
				if !slices.Contains(all.Waits, wait) {
					t.Errorf("%s is not in %v", wait, all.Waits)
				}
			}
			if part.Interrupted && !all.Interrupted {
				t.Error("the whole does not interrupt")
			}
			if p := part.Result.Priority; p != nil && *all.Result.Priority < *p {
				t.Errorf("the priority is %d, a part asked for %d", *all.Result.Priority, *p)
			}
			if got, asked := due(all.Result), due(part.Result); got > asked {
				t.Errorf("it is requeued after %s, a part asked for %s", got, asked)
			}
		}
	})
}

// due returns when controller-runtime reconciles again at the latest, given a normal result.
func due(result reconcile.Result) time.Duration {
	switch result = outcome.Normalize(result); {
	case result.RequeueAfter > 0:
		return result.RequeueAfter
	case result.Requeue:
		return outcome.LegacyRequeue
	default:
		return time.Hour
	}
}

func TestJoinChangesNoOperand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := outcomes.Draw(t, "a"), outcomes.Draw(t, "b"), outcomes.Draw(t, "c")
		wantA, wantB := valueOf(a), valueOf(b)
		ab := a.Join(b)
		wantAB := valueOf(ab)
		ab.Join(c)
		ab.Join(a)
		if diff := cmp.Diff([]value{wantA, wantB, wantAB}, []value{valueOf(a), valueOf(b), valueOf(ab)}); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
}

func TestNormalize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		result := results.Draw(t, "result")
		normal := outcome.Normalize(result)
		if normal.RequeueAfter < 0 || normal.RequeueAfter > 0 && normal.Requeue {
			t.Errorf("%+v is not normal", normal)
		}
		if outcome.Requeues(normal) != outcome.Requeues(result) {
			t.Errorf("%+v became %+v", result, normal)
		}
		if again := outcome.Normalize(normal); again != normal {
			t.Errorf("%+v became %+v", normal, again)
		}
	})
}

func TestJoinErrors(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for _, tt := range []struct {
		errs []error
		want string
	}{{nil, "<nil>"}, {[]error{a}, "a"}, {[]error{a, b}, "a; b"}} {
		err := outcome.JoinErrors(tt.errs)
		if got := fmt.Sprint(err); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
		if got := outcome.CausesOf(err); !slices.Equal(got, tt.errs) {
			t.Errorf("taken apart, %s is %v", tt.want, got)
		}
	}
	if joined := errors.Join(a, b); len(outcome.CausesOf(joined)) != 1 {
		t.Error("what another package has joined was taken apart")
	}
}
