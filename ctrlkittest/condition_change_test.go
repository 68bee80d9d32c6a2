// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
)

// at returns c as it is when its status has changed so long after noon.
func at(c metav1.Condition, d time.Duration) metav1.Condition {
	return having(c, func(c *metaCondition) { c.LastTransitionTime = metav1.NewTime(noon.Add(d)) })
}

// about returns c for this generation.
func about(c metav1.Condition, generation int64) metav1.Condition {
	return having(c, func(c *metaCondition) { c.ObservedGeneration = generation })
}

// written returns d with managed fields that say when it was written.
func written(d *database, after time.Duration) *database {
	earlier, later := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon.Add(after))
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "operator", Time: &later}, {Manager: "kubectl", Time: &earlier}, {Manager: "old"}}
	return d
}

func missing(message string) metav1.Condition {
	return with("SecretFound", "False", "NotFound", message)
}

// Each change breaks one rule, as structs and as what a dynamic client reads.
func TestChangeProblems(t *testing.T) {
	other := newDatabase(ready())
	other.UID = "two"
	for _, tt := range []struct {
		name          string
		before, after *database
		rule          ctrlkittest.ConditionRule
		want          string
	}{
		{"a time that moves alone", newDatabase(ready()), newDatabase(at(ready(), time.Second)),
			ctrlkittest.ConditionRuleMovesWithStatus, "lastTransitionTime went from 2026-07-01T12:00:00Z to 2026-07-01T12:00:01Z, and the status stayed True"},
		{"a time that goes back alone", newDatabase(ready()), newDatabase(at(ready(), -time.Second)),
			ctrlkittest.ConditionRuleMovesWithStatus, "and the status stayed True: keep it"},
		{"a time that vanishes", newDatabase(ready()), newDatabase(having(ready(), func(c *metaCondition) { c.LastTransitionTime = metav1.Time{} })),
			ctrlkittest.ConditionRuleMovesWithStatus, "went from 2026-07-01T12:00:00Z to nothing"},
		{"a status that changes alone", newDatabase(ready(), missing("it is gone")), newDatabase(ready(), found()),
			ctrlkittest.ConditionRuleMovesWithStatus, `status.conditions[1] "SecretFound": the status went from False to True, and lastTransitionTime stayed`},
		{"a status that changes alone, written later", newDatabase(missing("it is gone")), written(newDatabase(found()), 2*time.Second),
			ctrlkittest.ConditionRuleMovesWithStatus, "lastTransitionTime stayed 2026-07-01T12:00:00Z"},
		{"a status that changes while its time goes back", newDatabase(missing("it is gone")), newDatabase(at(found(), -time.Second)),
			ctrlkittest.ConditionRuleMovesWithStatus, "lastTransitionTime went back from 2026-07-01T12:00:00Z to 2026-07-01T11:59:59Z"},
		{"an older generation", newDatabase(ready()), newDatabase(about(ready(), 2)),
			ctrlkittest.ConditionRuleNeverBack, "observedGeneration fell from 3 to 2"},
		{"no generation any more", newDatabase(ready()), newDatabase(about(ready(), 0)),
			ctrlkittest.ConditionRuleNeverBack, "observedGeneration fell from 3 to 0"},
		{"another order", newDatabase(ready(), found(), paused()), newDatabase(found(), ready(), paused()),
			ctrlkittest.ConditionRuleKeepsOrder, "status.conditions was ordered Ready, SecretFound, Paused and is ordered SecretFound, Ready, Paused"},
		{"another order beside what comes and goes", newDatabase(stalled(), ready(), found()), newDatabase(found(), reconciling(), ready()),
			ctrlkittest.ConditionRuleKeepsOrder, "was ordered Ready, SecretFound and is ordered SecretFound, Ready"},
		{"another object", newDatabase(ready()), other, ctrlkittest.ConditionRuleSameObject, `the UID is "one" before and "two" after`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ctrlkittest.ConditionChangeProblems(tt.before, tt.after)
			if len(got) != 1 || got[0].Rule != tt.rule || !strings.Contains(got[0].Text, tt.want) {
				t.Errorf("got %q, want %q with %q", got, tt.rule, tt.want)
			}
			if diff := cmp.Diff(got, ctrlkittest.ConditionChangeProblems(toUnstructured(t, tt.before), toUnstructured(t, tt.after))); diff != "" {
				t.Errorf("as structs, and as what a dynamic client reads (-struct +dynamic):\n%s", diff)
			}
		})
	}
}

func TestRightChangesHaveNoProblems(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after *database
	}{
		{"nothing", newDatabase(ready(), found()), newDatabase(ready(), found())},
		{"a status with its time", newDatabase(ready(), missing("it is gone")), newDatabase(ready(), at(found(), time.Second))},
		{"a status within a second", newDatabase(missing("it is gone")), written(newDatabase(found()), time.Second)},
		{"a reason", newDatabase(missing("it is gone")), newDatabase(having(missing("it is empty"), func(c *metaCondition) { c.Reason = "Empty" }))},
		{"a number with a reason", newDatabase(missing("1 of 2 is gone")), newDatabase(having(missing("2 of 2 is gone"), func(c *metaCondition) { c.Reason = "More" }))},
		{"a number with a status", newDatabase(missing("0 of 1")), newDatabase(at(with("SecretFound", "True", "NotFound", "1 of 1"), time.Second))},
		{"a number with a generation", newDatabase(about(missing("wanted: 1"), 2)), newDatabase(missing("wanted: 2"))},
		{"words", newDatabase(missing("it is gone")), newDatabase(missing("it is empty"))},
		{"a later generation", newDatabase(about(ready(), 2)), newDatabase(ready())},
		{"what comes", newDatabase(ready(), found()), newDatabase(ready(), paused(), found())},
		{"what goes", newDatabase(ready(), paused(), found()), newDatabase(ready(), found())},
		{"the first conditions", newDatabase(), newDatabase(ready(), found())},
		{"a condition that is there twice", newDatabase(ready(), found(), ready()), newDatabase(ready(), found(), at(ready(), time.Hour))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ctrlkittest.ConditionChangeProblems(tt.before, tt.after); len(got) > 0 {
				t.Errorf("got %q", got)
			}
			if got := ctrlkittest.ConditionChangeProblems(toUnstructured(t, tt.before), toUnstructured(t, tt.after)); len(got) > 0 {
				t.Errorf("as what a dynamic client reads: got %q", got)
			}
		})
	}
}

// The order of the list in the wrong version is that of the problems.
func TestChangeProblemsReportsEverything(t *testing.T) {
	before := newDatabase(ready(), missing("try 1"))
	after := newDatabase(about(missing("try 1"), 2), about(at(ready(), time.Second), 2))
	want := []ctrlkittest.ConditionRule{ctrlkittest.ConditionRuleKeepsOrder, ctrlkittest.ConditionRuleNeverBack, ctrlkittest.ConditionRuleMovesWithStatus, ctrlkittest.ConditionRuleNeverBack}
	var got []ctrlkittest.ConditionRule
	for _, p := range ctrlkittest.ConditionChangeProblems(before, after) {
		got = append(got, p.Rule)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// What is checked is not changed.
func TestNothingIsChanged(t *testing.T) {
	before, after := newDatabase(found(), ready()), newDatabase(ready(), at(found(), time.Second))
	conditions := slices.Clone(before.Status.Conditions)
	ctrlkittest.ConditionProblems(before)
	ctrlkittest.ConditionChangeProblems(before, after)
	if diff := cmp.Diff(conditions, before.Status.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
