// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Adopt takes over conditions that were set on the object itself, for example by
// meta.SetStatusCondition, since the set was made or stored. Call it before [Set.Summarize].
//
//   - A declared condition counts as if it had been set here; one that is bad has severity Warning.
//   - A condition that is neither declared nor computed is kept as it was set. One that was removed
//     stays removed.
//   - A computed condition (Ready, Reconciling, Stalled, Paused) is not taken over: the error names
//     it.
func (s *Set) Adopt(obj any) error {
	now, err := Of(obj)
	if err != nil {
		return err
	}
	before := s.stored
	if before == nil {
		before = s.before
	}
	var mistakes []error
	for _, c := range now {
		if b := meta.FindStatusCondition(before, c.Type); b != nil && equality.Semantic.DeepEqual(*b, c) {
			continue
		}
		switch {
		case computed(c.Type) || c.Type == Paused:
			mistakes = append(mistakes, fmt.Errorf("condition %s is set on the object, but it is computed: declare a condition of another type and set that", c.Type))
		case s.isDeclared(c.Type):
			s.adoptDeclared(c)
		default:
			s.adoptForeign(c)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range before {
		if meta.FindStatusCondition(now, b.Type) == nil && !s.isOurs(b.Type) {
			s.remove(b.Type)
		}
	}
	return errors.Join(mistakes...)
}

func (s *Set) adoptDeclared(c metav1.Condition) {
	reason := orElse(c.Reason, string(c.Status))
	switch c.Status {
	case s.declaration(c.Type).good():
		s.MarkHealthy(c.Type, reason, c.Message)
	case metav1.ConditionUnknown:
		s.MarkUnknown(c.Type, reason, c.Message)
	default:
		s.MarkUnhealthy(c.Type, SeverityWarning, reason, c.Message)
	}
}

func (s *Set) adoptForeign(c metav1.Condition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = s.now
	}
	if i := slices.IndexFunc(s.conditions, func(o metav1.Condition) bool { return o.Type == c.Type }); i >= 0 {
		s.conditions[i] = c
		return
	}
	s.conditions = append(s.conditions, c)
}
