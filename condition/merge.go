// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MergeFromObject takes over conditions that were set on the object itself, for example with
// meta.SetStatusCondition, since the set was made or stored. Call it before [Set.Summarize].
//
//   - A declared condition counts as if it had been set here; an unhealthy one has severity
//     Warning.
//   - A condition that is neither declared nor computed is kept as it was set. One that was removed
//     stays removed.
//   - A computed condition (Ready, Reconciling, Stalled, Paused) is not taken over: the error names
//     it.
func (s *Set) MergeFromObject(obj any) error {
	now, err := Of(obj)
	if err != nil {
		return err
	}
	before := s.lastStored()
	var mistakes []error
	for _, c := range now {
		if b := meta.FindStatusCondition(before, c.Type); b != nil && equality.Semantic.DeepEqual(*b, c) {
			continue
		}
		switch {
		case computed(c.Type):
			mistakes = append(mistakes, fmt.Errorf("condition %s is set on the object, but it is computed: "+
				"declare a condition of another type and set that", c.Type))
		case s.declared.has(c.Type):
			s.mergeDeclared(c)
		default:
			s.mergeForeign(c)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range before {
		if meta.FindStatusCondition(now, b.Type) == nil && !s.declared.owns(b.Type) {
			s.list.remove(b.Type)
		}
	}
	return errors.Join(mistakes...)
}

// lastStored returns the conditions as they were stored last or, before that, read.
func (s *Set) lastStored() []metav1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored != nil {
		return s.stored
	}
	return s.list.before
}

func (s *Set) mergeDeclared(c metav1.Condition) {
	reason := cmp.Or(c.Reason, string(c.Status))
	switch c.Status {
	case s.declared.get(c.Type).healthy():
		s.MarkHealthy(c.Type, reason, c.Message)
	case metav1.ConditionUnknown:
		s.MarkUnknown(c.Type, reason, c.Message)
	default:
		s.MarkUnhealthy(c.Type, SeverityWarning, reason, c.Message)
	}
}

func (s *Set) mergeForeign(c metav1.Condition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = s.list.now
	}
	c.Reason, c.Message = validReason(c.Reason, c.Message)
	s.list.replace(c)
}
