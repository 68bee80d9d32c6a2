// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
)

// An operation is one thing that a reconcile does to a set.
type operation struct {
	call string
	do   func(*condition.Set)
}

func (o operation) GoString() string { return o.call }

var (
	conditionTypes = []string{"SecretFound", "Degraded", "BackupDone"}
	reasons        = []string{"NotFound", "Failed", "Done"}
	messages       = []string{
		"", "it is gone", "try 1 of it", "try 2 of it", "SecretFound: it is gone", "not UTF-8: \xff", strings.Repeat("long ", 300), strings.Repeat("ü", 700),
	}
)

func operations() *rapid.Generator[operation] {
	return rapid.Custom(func(t *rapid.T) operation {
		conditionType := rapid.SampledFrom(conditionTypes).Draw(t, "type")
		severity := rapid.SampledFrom([]condition.Severity{condition.SeverityInfo, condition.SeverityWarning, condition.SeverityError}).Draw(t, "severity")
		reason := rapid.SampledFrom(reasons).Draw(t, "reason")
		message := rapid.SampledFrom(messages).Draw(t, "message")
		return rapid.SampledFrom([]operation{
			{"MarkHealthy", func(s *condition.Set) { s.MarkHealthy(conditionType, reason, message) }},
			{"MarkUnhealthy", func(s *condition.Set) { s.MarkUnhealthy(conditionType, severity, reason, message) }},
			{"MarkUnknown", func(s *condition.Set) { s.MarkUnknown(conditionType, reason, message) }},
			{"MarkFailed", func(s *condition.Set) { s.MarkFailed(severity, reason, message) }},
			{"SetPaused", func(s *condition.Set) { s.SetPaused(reason, message) }},
			{"not paused", func(s *condition.Set) { s.SetPaused("", "") }},
			{"Summarize", (*condition.Set).Summarize},
			{"MarkObserved", func(s *condition.Set) { s.MarkObserved() }},
			{"MarkLastTryFailed", func(s *condition.Set) { s.MarkLastTryFailed([]string{conditionType}, message) }},
			{"MarkLastTryPassed", func(s *condition.Set) { s.MarkLastTryPassed([]string{conditionType}) }},
		}).Draw(t, "operation")
	})
}

const resetToPaused = "ResetToPaused"

// endings are how a reconcile ends.
func endings() *rapid.Generator[operation] {
	return rapid.SampledFrom([]operation{
		{"Summarize", (*condition.Set).Summarize},
		{"MarkObserved, Summarize", func(s *condition.Set) { s.MarkObserved(); s.Summarize() }},
		{"Summarize, KeepMessages", func(s *condition.Set) { s.Summarize(); s.KeepMessages() }},
		{resetToPaused, func(s *condition.Set) { s.ResetToPaused("Paused", "its owner wants it") }},
	})
}

// leftovers are conditions as an older version of the operator, or another controller, may have
// left them.
func leftovers() *rapid.Generator[metav1.Condition] {
	return rapid.Custom(func(t *rapid.T) metav1.Condition {
		types := append(slices.Clone(conditionTypes), condition.Ready, condition.Reconciling, condition.Stalled, condition.Paused, "Retired")
		return metav1.Condition{
			Type:    rapid.SampledFrom(types).Draw(t, "type"),
			Status:  rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown"}).Draw(t, "status"),
			Reason:  rapid.SampledFrom(reasons).Draw(t, "reason"),
			Message: "left", ObservedGeneration: 1, LastTransitionTime: noon,
		}
	})
}

// Whatever reconciles do, the conditions keep what ctrlkittest demands, and the same reconcile
// again changes nothing.
func TestConditionsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := &database{}
		obj.Generation = 1
		obj.Status.Conditions = append([]metav1.Condition{foreign(1)}, rapid.SliceOfN(leftovers(), 0, 5).Draw(t, "leftovers")...)
		now, tidy := noon.Time, false // what was left stays until the first reconcile that is not paused
		for range rapid.IntRange(1, 6).Draw(t, "reconciles") {
			if rapid.Bool().Draw(t, "the spec changes") {
				obj.Generation++
				obj.Status.Conditions[slices.IndexFunc(obj.Status.Conditions, isForeign)] = foreign(obj.Generation)
			}
			now = now.Add(time.Second * time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")))
			ending := endings().Draw(t, "ending")
			todo := append(rapid.SliceOfN(operations(), 0, 6).Draw(t, "operations"), ending)
			before := obj.copy()
			reconcile(t, obj, now, todo)
			var found []ctrlkittest.ConditionProblem
			if tidy {
				found = ctrlkittest.ConditionChangeProblems(before, obj)
			}
			if tidy = tidy || ending.call != resetToPaused; tidy {
				found = append(found, ctrlkittest.ConditionProblems(obj)...)
			}
			for _, p := range found {
				if p.Rule == ctrlkittest.ConditionRuleObserved && strings.Contains(p.Text, `"BackupDone"`) {
					continue // it only informs: Ready does not wait until it is set again
				}
				t.Error(p)
			}
			once := obj.copy()
			reconcile(t, obj, now.Add(time.Hour), todo)
			same(t, "the same again makes other conditions (-once +twice)", once.Status.Conditions, obj.Status.Conditions)
		}
	})
}

func foreign(generation int64) metav1.Condition {
	return metav1.Condition{
		Type: "example.com/Scanned", Status: "False", Reason: "Later", ObservedGeneration: generation, LastTransitionTime: noon,
	}
}

func isForeign(c metav1.Condition) bool { return c.Type == foreign(1).Type }

func reconcile(t *rapid.T, obj *database, now time.Time, todo []operation) {
	set, err := condition.NewSet(obj, condition.Options{Declared: declared, Retired: []string{"Retired"}, Now: now})
	must(t, err)
	set.SetPaused("", "") // as every reconcile of an object that is not paused does
	for _, o := range todo {
		o.do(set)
	}
	must(t, set.Store(obj))
	if !slices.ContainsFunc(obj.Status.Conditions, isForeign) {
		t.Fatal("the condition of another controller is gone")
	}
}
