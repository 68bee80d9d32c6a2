// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/engine/text"
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
	reason, message = validReason(reason, message)
	c := metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: text.Shorten(message, text.Longest),
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

// checkSeverity panics about what is a mistake in the caller's code.
func checkSeverity(what string, severity Severity) {
	if severity < SeverityInfo || severity > SeverityError {
		panic("condition: " + what + " is set without a severity: use SeverityInfo, SeverityWarning or SeverityError")
	}
}

// validReason returns a reason that the API server accepts. Reasons may come from the answers of
// other systems: one that is not valid is written in upper camel case, and the message begins with
// the original one.
func validReason(reason, message string) (valid, text string) {
	if len(reason) <= longestReason && reasonPattern.MatchString(reason) {
		return reason, message
	}
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(reason, func(r rune) bool {
		return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	if valid = strings.TrimLeft(b.String(), "_"); valid == "" || unicode.IsDigit(rune(valid[0])) {
		valid = "Reason" + valid
	}
	switch {
	case reason == "" || strings.HasPrefix(message, reason):
	case message == "":
		message = reason
	default:
		message = reason + ": " + message
	}
	return valid[:min(len(valid), longestReason)], message
}
