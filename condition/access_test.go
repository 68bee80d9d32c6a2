// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/condition"
)

type (
	// Conditioned, Base and Statused are embedded by others.
	Conditioned struct{ Conditions []metav1.Condition }
	Base        struct{ Status Conditioned }
	embedding   struct {
		metav1.ObjectMeta
		Status struct {
			Phase string
			Conditioned
		}
	}
	deepEmbedding    struct{ Base }
	pointerEmbedding struct{ *Base }
	pointerInStatus  struct{ Status struct{ *Conditioned } }
	pointerStatus    struct{ Status *Conditioned }
	otherStatus      struct{ Status string }
	otherConditions  struct{ Status struct{ Conditions []string } }
	noStatus         struct{ Conditions []metav1.Condition }
)

// An elsewhere keeps its conditions where only it knows, beside a field that looks like them.
type elsewhere struct {
	Status Conditioned
	own    []metav1.Condition
}

func (e *elsewhere) GetConditions() []metav1.Condition           { return e.own }
func (e *elsewhere) SetConditions(conditions []metav1.Condition) { e.own = conditions }

func TestAccess(t *testing.T) {
	own := &elsewhere{}
	for _, tt := range []struct {
		name string
		obj  any
	}{
		{"a field", &database{}},
		{"a field of a struct in the status", &embedding{}},
		{"a field of a struct in the object", &deepEmbedding{}},
		{"a field of a status that is a pointer", &pointerStatus{}},
		{"methods", own},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, want := range [][]metav1.Condition{{stored("A", isTrue, "A", "")}, {}, nil} {
				must(t, condition.Store(tt.obj, want))
				got, err := condition.Of(tt.obj)
				must(t, err)
				same(t, "conditions", want, got)
			}
		})
	}
	none := &pointerStatus{}
	must(t, condition.Store(none, nil))
	if got, err := condition.Of(none); none.Status != nil || got != nil || err != nil {
		t.Errorf("nothing was stored, and there is %v, %v, %v", none.Status, got, err)
	}
	if own.Status.Conditions = []metav1.Condition{stored("A", isTrue, "A", "")}; len(own.own) > 0 {
		t.Error("the field was taken although there are methods")
	}
}

func TestNoConditions(t *testing.T) {
	const needs = "it needs a field Status.Conditions []metav1.Condition, or the methods GetConditions and SetConditions"
	for _, tt := range []struct {
		name string
		obj  any
		want string
	}{
		{"nothing", nil, "<nil>: no conditions: it is not a pointer to a struct"},
		{"no pointer", database{}, "condition_test.database: no conditions: it is not a pointer to a struct"},
		{"a nil pointer", (*database)(nil), "it is not a pointer to a struct"},
		{"a pointer to something else", new(string), "*string: no conditions: it is not a pointer to a struct"},
		{"no status", &noStatus{}, needs},
		{"a status that is a text", &otherStatus{}, needs},
		{"conditions of another type", &otherConditions{}, needs},
		{"behind a pointer that is nil", &pointerEmbedding{}, needs},
		{"behind a pointer in the status", &pointerInStatus{}, needs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := condition.Of(tt.obj)
			for _, err := range []error{err, condition.Store(tt.obj, nil)} {
				if !errors.Is(err, condition.ErrNone) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got error %v, want %q", err, tt.want)
				}
			}
		})
	}
}

// A type that is met for the first time by two goroutines.
func TestAccessFromTwoGoroutines(t *testing.T) {
	type fresh struct{ Status Conditioned }
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if _, err := condition.Of(&fresh{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// What a step marks in a set.

func all(marks ...func(*condition.Set)) func(*condition.Set) {
	return func(s *condition.Set) {
		for _, mark := range marks {
			mark(s)
		}
	}
}

func healthy(conditionType, reason, message string) func(*condition.Set) {
	return func(s *condition.Set) { s.MarkHealthy(conditionType, reason, message) }
}

func unhealthy(conditionType string, severity condition.Severity, reason, message string) func(*condition.Set) {
	return func(s *condition.Set) { s.MarkUnhealthy(conditionType, severity, reason, message) }
}

func unknown(conditionType, reason, message string) func(*condition.Set) {
	return func(s *condition.Set) { s.MarkUnknown(conditionType, reason, message) }
}

func failed(severity condition.Severity, reason, message string) func(*condition.Set) {
	return func(s *condition.Set) { s.MarkFailed(severity, reason, message) }
}

func lastTryFailed(types []string, message string) func(*condition.Set) {
	return func(s *condition.Set) { s.MarkLastTryFailed(types, message) }
}

func lastTryPassed(types []string) func(*condition.Set) {
	return func(s *condition.Set) { s.MarkLastTryPassed(types) }
}

// same checks that got is want. What says of what, and may be empty in a test that checks one thing.
func same[T any](t rapid.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
