// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MarkHealthy sets a declared condition to its healthy status. The message may be empty.
//
// A reason looks like "SecretNotFound". One that the API server would refuse, such as the
// "quota-exceeded" of another system, becomes "QuotaExceeded", and the message begins with the
// original one. That holds for all methods of a Set.
func (s *Set) MarkHealthy(conditionType, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.declared.get(conditionType)
	s.note(conditionType, 0)
	s.list.put(conditionType, d.healthy(), reason, message)
}

// MarkUnhealthy sets a declared condition to its unhealthy status. An empty message becomes the
// reason: a condition that is not healthy needs one. MarkUnhealthy panics if severity is invalid.
func (s *Set) MarkUnhealthy(conditionType string, severity Severity, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.declared.get(conditionType)
	checkSeverity(conditionType, severity)
	s.note(conditionType, severity)
	s.list.put(conditionType, d.unhealthy(), reason, cmp.Or(message, reason))
}

// MarkUnknown sets a declared condition to Unknown. The object is then not Ready, with severity
// Info. An empty message becomes the reason.
func (s *Set) MarkUnknown(conditionType, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared.get(conditionType)
	s.note(conditionType, SeverityInfo)
	s.list.put(conditionType, metav1.ConditionUnknown, reason, cmp.Or(message, reason))
}

// note records that a condition was set in this reconcile, with its severity, 0 if it is healthy.
func (s *Set) note(conditionType string, severity Severity) {
	if s.set == nil {
		s.set, s.severities = make(map[string]bool), make(map[string]Severity)
	}
	s.set[conditionType] = true
	delete(s.doubted, conditionType)
	if severity == 0 {
		delete(s.severities, conditionType)
		return
	}
	s.severities[conditionType] = severity
}

// A failed is a failure that no declared condition reports.
type failed struct {
	severity        Severity
	reason, message string
}

// MarkFailed records a failure that no declared condition reports, for [Set.Summarize]. Of several
// the worst is kept, and of equally bad ones the first. MarkFailed panics if severity is invalid.
func (s *Set) MarkFailed(severity Severity, reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	checkSeverity("a failure", severity)
	reason, message = validReason(reason, message)
	if s.failure == nil || severity > s.failure.severity {
		s.failure = &failed{severity, reason, cmp.Or(message, reason)}
	}
}

// DowngradeToInfo makes everything that is not healthy count as [SeverityInfo], and drops what
// [Set.MarkFailed] has recorded: the object is about to be deleted, and no person has to act on it
// any more.
func (s *Set) DowngradeToInfo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.severities)
	s.failure = nil
}

// MarkObserved records that all declared conditions are about the present generation, also those
// that were not set because they stay as they were, except those whose step has not finished
// evaluating them.
func (s *Set) MarkObserved(except ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list.items {
		if c := &s.list.items[i]; s.declared.has(c.Type) && !slices.Contains(except, c.Type) {
			c.ObservedGeneration = s.list.generation
		}
	}
}

// SetPaused sets the condition Paused. An empty reason removes it: the object is not paused.
func (s *Set) SetPaused(reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list.setPaused(reason, cmp.Or(message, reason))
}

// ResetToPaused undoes all changes of this reconcile and sets the condition Paused. An object that
// was never reconciled becomes Ready Unknown: without a condition Ready, other tools would take it
// for ready.
func (s *Set) ResetToPaused(reason, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list.reset()
	clear(s.severities)
	s.failure = nil
	s.list.setPaused(reason, cmp.Or(message, reason))
	if s.list.find(Ready) == nil {
		s.list.put(Ready, metav1.ConditionUnknown, reason, cmp.Or(message, reason))
	}
}
