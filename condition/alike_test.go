// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
)

type (
	word string

	// An alike has the fields of metav1.Condition, in another order and of types of its own.
	alike struct {
		LastTransitionTime metav1.Time
		Type, Reason       word
		Status             metav1.ConditionStatus
		Message            string
		ObservedGeneration int64
	}
	further struct {
		alike
		Severity string
	}
	narrow struct {
		LastTransitionTime            metav1.Time
		Type, Reason, Status, Message string
		ObservedGeneration            int32
	}
	unobserved struct {
		LastTransitionTime            metav1.Time
		Type, Reason, Status, Message string
	}
)

type withList[C any] struct {
	Status struct{ Conditions []C }
}

// Conditions of a type that has the same fields are read and stored.
func TestAlikeConditions(t *testing.T) {
	obj := &withList[alike]{}
	for _, want := range [][]metav1.Condition{{
		{Type: "A", Status: "True", Reason: "R", Message: "m", ObservedGeneration: 3, LastTransitionTime: metav1.Unix(7, 0)},
		{Type: "B", Status: "False", Reason: "S"},
	}, {}, nil} {
		must(t, condition.Store(obj, want))
		got, err := condition.Of(obj)
		must(t, err)
		same(t, "conditions", want, got)
		if len(want) > 0 {
			same(t, "the object's first", alike{Type: "A", Status: "True", Reason: "R", Message: "m", ObservedGeneration: 3, LastTransitionTime: metav1.Unix(7, 0)}, obj.Status.Conditions[0])
		}
	}
}

// A type that would lose something is none.
func TestNotAlike(t *testing.T) {
	for name, obj := range map[string]any{
		"a further field":        &withList[further]{},
		"a narrower field":       &withList[narrow]{},
		"a field is missing":     &withList[unobserved]{},
		"pointers to conditions": &withList[*alike]{},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := condition.Of(obj); !errors.Is(err, condition.ErrNone) {
				t.Errorf("got error %v, want that there are none", err)
			}
		})
	}
}
