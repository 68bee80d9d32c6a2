// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MarkLastTryFailed records that the step that sets these declared conditions has failed. The
// conditions that it stored while all was well say nothing any more:
//
//   - Conditions that were healthy, and that were not set in this reconcile, become Unknown with
//     [reasonLastTryFailed]. They keep the generation that they were about.
//   - Ready does not count them beside the failure, which is their cause.
//   - Informational conditions stay as they are.
//
// [Set.MarkLastTryPassed] makes them healthy again.
func (s *Set) MarkLastTryFailed(conditionTypes []string, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conditionType := range conditionTypes {
		d := s.declared.get(conditionType)
		c := s.list.find(conditionType)
		if c == nil || s.set[conditionType] || d.Informational ||
			c.Status != d.healthy() && !lastTryFailed(c) {
			continue
		}
		if s.doubted == nil {
			s.doubted = make(map[string]bool)
		}
		s.doubted[conditionType] = true
		generation := c.ObservedGeneration
		if before := meta.FindStatusCondition(s.list.before, conditionType); before != nil {
			generation = before.ObservedGeneration // MarkLastTryPassed may have changed it in this reconcile
		}
		s.list.put(conditionType, metav1.ConditionUnknown, reasonLastTryFailed, cmp.Or(message, reasonLastTryFailed))
		c.ObservedGeneration = generation
	}
}

// MarkLastTryPassed records that the step that sets these declared conditions has passed. Those
// that [Set.MarkLastTryFailed] has made Unknown, and that were not set in this reconcile because
// they stay as they were, become healthy again with [reasonLastTryPassed].
func (s *Set) MarkLastTryPassed(conditionTypes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conditionType := range conditionTypes {
		if c := s.list.find(conditionType); c != nil && !s.set[conditionType] && lastTryFailed(c) {
			delete(s.doubted, conditionType)
			s.list.put(conditionType, s.declared.get(conditionType).healthy(), reasonLastTryPassed, "")
		}
	}
}

func lastTryFailed(c *metav1.Condition) bool {
	return c.Status == metav1.ConditionUnknown && c.Reason == reasonLastTryFailed
}
