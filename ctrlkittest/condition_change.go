// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConditionChangeProblems returns what is wrong between two versions of an object, the earlier one
// first. They are best consecutive, as a watch delivers them: a condition that has changed twice in
// between looks unchanged. Mistakes in each of them alone are left to [ConditionProblems].
func ConditionChangeProblems(before, after client.Object) []ConditionProblem {
	was, found := read(before)
	is, unreadable := read(after)
	found = append(found, unreadable...)
	if was == nil || is == nil {
		return found
	}
	if a, b := before.GetUID(), after.GetUID(); a != b {
		found.add(ConditionRuleSameObject, "the UID is %q before and %q after: compare two versions of one object", a, b)
		return found
	}
	found = append(found, wrongOrder(was, is)...)
	written := lastWrite(after)
	for _, c := range is.conditions {
		if b, ok := was.find(c.Type); ok && is.first(c) {
			found = append(found, wrongChange(b, c, written)...)
		}
	}
	return found
}

// first reports whether a condition is the first of its type.
func (o *object) first(c placed) bool {
	p, _ := o.find(c.Type)
	return p.index == c.index
}

// lastWrite returns when an object was last written, as far as its managed fields say.
func lastWrite(obj client.Object) (last time.Time) {
	for _, entry := range obj.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

func wrongChange(before, after placed, written time.Time) (found problems) {
	was, is := before.LastTransitionTime, after.LastTransitionTime
	switch {
	case before.Status == after.Status && !is.Equal(&was):
		found.add(ConditionRuleMovesWithStatus, "%s: lastTransitionTime went from %s to %s, and the status stayed %s: keep it",
			after, shownTime(was), shownTime(is), after.Status)
	case before.Status != after.Status && is.Before(&was):
		found.add(ConditionRuleMovesWithStatus, "%s: lastTransitionTime went back from %s to %s: set it to the time at which the status changed",
			after, shownTime(was), shownTime(is))
	case before.Status != after.Status && is.Equal(&was) && (written.IsZero() || written.Sub(is.Time) > time.Second):
		found.add(ConditionRuleMovesWithStatus, "%s: the status went from %s to %s, and lastTransitionTime stayed %s: "+
			"set it to the time at which the status changed (in a test, let a second pass)", after, before.Status, after.Status, shownTime(is))
	}
	if after.ObservedGeneration < before.ObservedGeneration {
		found.add(ConditionRuleNeverBack, "%s: observedGeneration fell from %d to %d: "+
			"copy metadata.generation of the object that was reconciled, and write with its resourceVersion", after, before.ObservedGeneration, after.ObservedGeneration)
	}
	return found
}

func shownTime(t metav1.Time) string {
	if t.IsZero() {
		return "nothing"
	}
	return t.UTC().Format(time.RFC3339)
}

// wrongOrder compares the order of the types that are in both.
func wrongOrder(was, is *object) (found problems) {
	before, after := was.typesIn(is), is.typesIn(was)
	if !slices.Equal(before, after) {
		found.add(ConditionRuleKeepsOrder, "status.conditions was ordered %s and is ordered %s: "+
			"change conditions in place, and do not build the list from a map",
			strings.Join(before, ", "), strings.Join(after, ", "))
	}
	return found
}

// typesIn returns the types that other has too, each once, in their order.
func (o *object) typesIn(other *object) []string {
	var types []string
	for _, c := range o.conditions {
		if _, ok := other.find(c.Type); ok && o.first(c) {
			types = append(types, c.Type)
		}
	}
	return types
}
