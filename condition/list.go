// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A list is the conditions of a [Set], in no order.
type list struct {
	items      []metav1.Condition
	before     []metav1.Condition // as they were on the object
	generation int64
	now        metav1.Time
}

// find returns the condition of a type, which the caller may change, or nil.
func (l *list) find(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(l.items, conditionType)
}

// put changes a condition. The transition time moves if the status is not the stored one: a
// condition that goes and comes back within one reconcile has not changed.
func (l *list) put(conditionType string, status metav1.ConditionStatus, reason, message string) {
	checkReason(conditionType, reason)
	c := metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: shorten(message, longestMessage),
		ObservedGeneration: l.generation, LastTransitionTime: l.now,
	}
	b := meta.FindStatusCondition(l.before, conditionType)
	if b != nil && b.Status == status && !b.LastTransitionTime.IsZero() {
		c.LastTransitionTime = b.LastTransitionTime
	}
	l.replace(c)
}

// replace puts a condition in the place of that of its type, or adds it.
func (l *list) replace(c metav1.Condition) {
	if old := l.find(c.Type); old != nil {
		*old = c
		return
	}
	l.items = append(l.items, c)
}

func (l *list) remove(conditionType string) {
	l.items = slices.DeleteFunc(l.items, func(c metav1.Condition) bool { return c.Type == conditionType })
}

// reset undoes all changes.
func (l *list) reset() { l.items = slices.Clone(l.before) }

// unchanged returns the condition of this type on the object, if status and reason are still the
// same, and otherwise nil.
func (l *list) unchanged(c *metav1.Condition) *metav1.Condition {
	b := meta.FindStatusCondition(l.before, c.Type)
	if b == nil || b.Status != c.Status || b.Reason != c.Reason {
		return nil
	}
	return b
}

// setPaused sets the condition Paused. Without a reason it removes it.
func (l *list) setPaused(reason, message string) {
	if reason == "" {
		l.remove(Paused)
		return
	}
	l.put(Paused, metav1.ConditionTrue, reason, message)
}

// checkSeverity and checkReason panic about what is a mistake in the caller's code.
func checkSeverity(what string, severity Severity) {
	if severity < SeverityInfo || severity > SeverityError {
		panic("condition: " + what + " is set without a severity: use SeverityInfo, SeverityWarning or SeverityError")
	}
}

func checkReason(what, reason string) {
	if !reasonPattern.MatchString(reason) || len(reason) > longestReason {
		panic(fmt.Sprintf("condition: reason %q of %s: a reason looks like \"SecretNotFound\"", reason, what))
	}
}
