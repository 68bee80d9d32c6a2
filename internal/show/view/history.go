// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A conditionStrip is one condition over time.
type conditionStrip struct {
	Type  string
	Parts []stripPart
}

// history draws the conditions of an object that have changed since the first entry of a journal:
// what it has recorded of their changes, and before the first of them what the last transition
// says.
func (v *viewing) history(conditions []metav1.Condition, entries []journal.Entry, ofEngine bool) []block {
	if len(entries) == 0 || len(conditions) == 0 {
		return nil
	}
	from := entries[0].Time
	length := max(v.now.Sub(from), time.Second)
	changes := map[string][]metav1.Condition{}
	for _, e := range entries {
		if c, ok := e.Event.(journal.ConditionChanged); ok {
			changes[c.Type] = append(changes[c.Type], metav1.Condition{
				Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, LastTransitionTime: metav1.NewTime(e.Time),
			})
		}
	}
	var strips []conditionStrip
	for _, c := range conditions {
		all := changes[c.Type]
		if n := len(all); n == 0 || all[n-1].Status != c.Status || all[n-1].Reason != c.Reason { // of another writer, or from before the journal
			all = append(all, c)
		}
		if parts := partsOf(all, from, length, ofEngine); len(parts) > 1 || parts[0].X > 0 { // of others the list of conditions says as much
			strips = append(strips, conditionStrip{explanation.OneLine(c.Type), parts})
		}
	}
	if len(strips) == 0 {
		return nil
	}
	return []block{render("history", "history", struct {
		From   time.Time
		Strips []conditionStrip
	}{from, strips})}
}

// partsOf returns the parts of a strip from the changes of one condition, in their order.
func partsOf(changes []metav1.Condition, from time.Time, length time.Duration, ofEngine bool) []stripPart {
	slices.SortStableFunc(changes, func(a, b metav1.Condition) int { return a.LastTransitionTime.Compare(b.LastTransitionTime.Time) })
	var parts []stripPart
	for _, c := range changes {
		at := latest(from, c.LastTransitionTime.Time)
		x := min(100, 100*float64(at.Sub(from))/float64(length))
		if n := len(parts); n > 0 {
			parts[n-1].W = x - parts[n-1].X
			if parts[n-1].W <= 0 {
				parts = parts[:n-1]
			}
		}
		tone := toneOfCondition(c, ofEngine)
		word := explanation.OneLine(string(c.Status) + cmp.Or(map[bool]string{true: " " + c.Reason}[c.Reason != ""], ""))
		if n := len(parts); n > 0 && parts[n-1].Word == word {
			continue
		}
		parts = append(parts, stripPart{Tone: tone, Mark: statusMarks[c.Status], Word: word, X: x, From: at})
	}
	if n := len(parts); n > 0 {
		parts[n-1].W = 100 - parts[n-1].X
	}
	return parts
}

// statusMarks are the symbols of statuses, so that a strip says them without its colors.
var statusMarks = map[metav1.ConditionStatus]string{metav1.ConditionTrue: "●", metav1.ConditionFalse: "○", metav1.ConditionUnknown: "?"}
