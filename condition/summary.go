// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/engine/text"
)

// Summarize computes Ready, Reconciling and Stalled from the declared conditions that are not
// informational, and from what [Set.MarkFailed] has recorded:
//
//   - Ready is True when all of them are healthy and about the present generation. One that was set
//     before the spec changed, and was neither set nor marked by [Set.MarkObserved] since, says
//     nothing about the object as it is.
//   - Otherwise Ready is False, with the reason and the message of the worst, the first declared
//     among equals. The message names that condition, and counts the others, but not what waits
//     (SeverityInfo) beside what is worse or beside a wait that MarkFailed has recorded.
//   - Beside a Ready that is False, SeverityError makes the object Stalled, and a lesser severity
//     Reconciling.
func (s *Set) Summarize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	worst, conditionType, others := s.worst()
	if worst == nil {
		s.list.put(Ready, metav1.ConditionTrue, ReasonReady, "")
		s.list.remove(Reconciling)
		s.list.remove(Stalled)
		return
	}
	message, more := worst.message, ""
	if conditionType != "" && !strings.HasPrefix(message, conditionType+": ") {
		message = conditionType + ": " + message
	}
	if others > 0 {
		more = fmt.Sprintf(" (and %d more)", others)
	}
	message = text.Shorten(message, text.Longest-len(more)) + more
	s.list.put(Ready, metav1.ConditionFalse, worst.reason, message)
	if worst.severity == SeverityError {
		s.list.put(Stalled, metav1.ConditionTrue, worst.reason, message)
		s.list.remove(Reconciling)
		return
	}
	s.list.put(Reconciling, metav1.ConditionTrue, worst.reason, message)
	s.list.remove(Stalled)
}

// worst returns what is worst, the type of the condition that reports it (empty for what
// MarkFailed has recorded), and how many others the message counts. A healthy one about an older
// generation counts only if nothing else does.
func (s *Set) worst() (worst *failed, conditionType string, others int) {
	bad, waiting, old := 0, 0, ""
	count := func(severity Severity) {
		if severity > SeverityInfo {
			bad++
		} else {
			waiting++
		}
	}
	if worst = s.failure; worst != nil {
		count(worst.severity)
	}
	for _, d := range s.declared {
		c := s.list.find(d.Type)
		if d.Informational || c == nil {
			continue
		}
		if c.Status == d.healthy() {
			if old == "" && c.ObservedGeneration != s.list.generation {
				old = d.Type
			}
			continue
		}
		severity := s.severity(*c)
		if c.Reason != ReasonNotReached && !s.doubted[d.Type] { // those two follow from another one
			count(severity)
		}
		if worst == nil || severity > worst.severity {
			worst, conditionType = &failed{severity, c.Reason, c.Message}, d.Type
		}
	}
	if worst == nil && old != "" {
		return &failed{SeverityInfo, ReasonNotReached, "not evaluated since the spec changed"}, old, 0
	}
	if bad == 0 && worst != s.failure {
		bad = waiting
	}
	return worst, conditionType, max(0, bad-1)
}

// WorstSeverity returns the severity of the worst declared condition that was set in this reconcile
// and is not informational, of all or of those of some types; zero if there is none.
func (s *Set) WorstSeverity(types ...string) Severity {
	s.mu.Lock()
	defer s.mu.Unlock()
	var worst Severity
	for _, d := range s.declared {
		if !d.Informational && (len(types) == 0 || slices.Contains(types, d.Type)) {
			worst = max(worst, s.severities[d.Type])
		}
	}
	return worst
}

// A Change is a condition whose status or reason is not what it was on the object.
type Change struct {
	metav1.Condition
	Severity Severity // zero if the condition is healthy now
}

// Changes returns the declared conditions, and Ready, whose status or reason has changed.
func (s *Set) Changes() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []Change
	for _, c := range s.sorted() {
		if c.Type != Ready && !s.declared.has(c.Type) || s.list.unchanged(&c) != nil {
			continue
		}
		changes = append(changes, Change{c, s.severity(c)})
	}
	return changes
}

// severity returns how bad a declared condition is, or Ready.
func (s *Set) severity(c metav1.Condition) Severity {
	if c.Type == Ready {
		worst, _, _ := s.worst()
		if worst == nil {
			return 0
		}
		return worst.severity
	}
	if c.Status == s.declared.get(c.Type).healthy() {
		return 0
	}
	return max(s.severities[c.Type], SeverityInfo)
}
