// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
)

func TestSummarize(t *testing.T) {
	allGood := all(healthy("SecretFound", "Found", ""), healthy("Degraded", "Fine", ""))
	for _, tt := range []struct {
		name  string
		do    func(*condition.Set)
		want  []string // of what is computed
		worst condition.Severity
	}{
		{"all good", allGood, []string{"Ready=True Ready"}, 0},
		{"nothing was set", func(*condition.Set) {},
			[]string{
				"Ready=False NotReached: SecretFound: not evaluated yet",
				"Reconciling=True NotReached: SecretFound: not evaluated yet",
			}, 0},
		{"info", all(allGood, unhealthy("SecretFound", condition.SeverityInfo, "NotFound", "waits for it")),
			[]string{"Ready=False NotFound: SecretFound: waits for it", "Reconciling=True NotFound: SecretFound: waits for it"}, condition.SeverityInfo},
		{"warning", all(allGood, unhealthy("Degraded", condition.SeverityWarning, "Slow", "it is slow")),
			[]string{"Ready=False Slow: Degraded: it is slow", "Reconciling=True Slow: Degraded: it is slow"}, condition.SeverityWarning},
		{"error", all(allGood, unhealthy("Degraded", condition.SeverityError, "Broken", "replace the disk")),
			[]string{"Ready=False Broken: Degraded: replace the disk", "Stalled=True Broken: Degraded: replace the disk"}, condition.SeverityError},
		{"unknown", all(allGood, unknown("Degraded", "NoAnswer", "silence")),
			[]string{"Ready=False NoAnswer: Degraded: silence", "Reconciling=True NoAnswer: Degraded: silence"}, condition.SeverityInfo},
		{"what informs does not count", all(allGood, unhealthy("BackupDone", condition.SeverityError, "Full", "the disk is full")),
			[]string{"Ready=True Ready"}, 0},
		{"the worst", all(unhealthy("SecretFound", condition.SeverityInfo, "NotFound", "waits for it"), unhealthy("Degraded", condition.SeverityWarning, "Slow", "it is slow")),
			[]string{"Ready=False Slow: Degraded: it is slow", "Reconciling=True Slow: Degraded: it is slow"}, condition.SeverityWarning},
		{"both wait", all(unhealthy("SecretFound", condition.SeverityInfo, "NotFound", "waits for it"), unhealthy("Degraded", condition.SeverityInfo, "Slow", "it is slow")),
			[]string{"Ready=False NotFound: SecretFound: waits for it (and 1 more)", "Reconciling=True NotFound: SecretFound: waits for it (and 1 more)"}, condition.SeverityInfo},
		{"a wait that was recorded, and one", all(allGood, unhealthy("SecretFound", condition.SeverityInfo, "NotFound", "waits for it"), failed(condition.SeverityInfo, "Waiting", "waits for the system")),
			[]string{"Ready=False Waiting: waits for the system", "Reconciling=True Waiting: waits for the system"}, condition.SeverityInfo},
		{"the first declared of those that are equally bad", all(unhealthy("Degraded", condition.SeverityWarning, "Slow", "it is slow"), unhealthy("SecretFound", condition.SeverityWarning, "NotFound", "it is gone")),
			[]string{"Ready=False NotFound: SecretFound: it is gone (and 1 more)", "Reconciling=True NotFound: SecretFound: it is gone (and 1 more)"}, condition.SeverityWarning},
		{"the type is not said twice", all(allGood, unhealthy("Degraded", condition.SeverityInfo, "Slow", "Degraded: it is slow")),
			[]string{"Ready=False Slow: Degraded: it is slow", "Reconciling=True Slow: Degraded: it is slow"}, condition.SeverityInfo},
		{"bad and then good", all(unhealthy("Degraded", condition.SeverityError, "Broken", "broken"), allGood),
			[]string{"Ready=True Ready"}, 0},
		{"failed", all(allGood, failed(condition.SeverityWarning, "NoAnswer", "calling the server: no answer")),
			[]string{"Ready=False NoAnswer: calling the server: no answer", "Reconciling=True NoAnswer: calling the server: no answer"}, 0},
		{"failed without a message", all(allGood, failed(condition.SeverityError, "NoAnswer", "")),
			[]string{"Ready=False NoAnswer: NoAnswer", "Stalled=True NoAnswer: NoAnswer"}, 0},
		{"failed twice: the worst stays", all(allGood, failed(condition.SeverityInfo, "A", "first"), failed(condition.SeverityError, "B", "second"), failed(condition.SeverityError, "C", "third")),
			[]string{"Ready=False B: second", "Stalled=True B: second"}, 0},
		{"failed, and a condition that is as bad", all(allGood, unhealthy("Degraded", condition.SeverityWarning, "Slow", "it is slow"), failed(condition.SeverityWarning, "NoAnswer", "no answer")),
			[]string{"Ready=False NoAnswer: no answer (and 1 more)", "Reconciling=True NoAnswer: no answer (and 1 more)"}, condition.SeverityWarning},
		{"failed, and a condition that is worse", all(allGood, failed(condition.SeverityWarning, "NoAnswer", "no answer"), unhealthy("Degraded", condition.SeverityError, "Broken", "broken")),
			[]string{"Ready=False Broken: Degraded: broken (and 1 more)", "Stalled=True Broken: Degraded: broken (and 1 more)"}, condition.SeverityError},
		{"summarized again", all(unhealthy("Degraded", condition.SeverityError, "Broken", "broken"), (*condition.Set).Summarize, allGood, unhealthy("SecretFound", condition.SeverityInfo, "NotFound", "waits for it")),
			[]string{"Ready=False NotFound: SecretFound: waits for it", "Reconciling=True NotFound: SecretFound: waits for it"}, condition.SeverityInfo},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Whatever an earlier reconcile has computed is replaced.
			set := newSet(t, newDatabase(
				stored(condition.Ready, isFalse, "Old", "old"), stored(condition.Reconciling, isTrue, "Old", "old"), stored(condition.Stalled, isTrue, "Old", "old")))
			tt.do(set)
			set.Summarize()
			got := slices.DeleteFunc(set.Conditions(), func(c metav1.Condition) bool { return set.Declared(c.Type) })
			same(t, "computed conditions", tt.want, texts(got))
			same(t, "worst severity", tt.worst, set.WorstSeverity())
		})
	}
}

// A condition that was good before the spec changed says nothing about the object as it is.
func TestReadyIsAboutThePresentGeneration(t *testing.T) {
	d := newDatabase(stored("SecretFound", isTrue, "Found", ""), stored("Degraded", isFalse, "Fine", ""), stored("BackupDone", isTrue, "Done", ""))
	d.Generation = 2
	for _, tt := range []struct {
		name string
		do   func(*condition.Set)
		want string
	}{
		{"none was evaluated again", func(*condition.Set) {}, "Ready=False NotReached: SecretFound: not evaluated since the spec changed"},
		{"one was not evaluated again", healthy("SecretFound", "Found", ""),
			"Ready=False NotReached: Degraded: not evaluated since the spec changed"},
		{"another is worse", unknown("SecretFound", "NoAnswer", "silence"), "Ready=False NoAnswer: SecretFound: silence"},
		{"set again", all(healthy("SecretFound", "Found", ""), healthy("Degraded", "Fine", "")), "Ready=True Ready"},
		{"observed", func(s *condition.Set) { s.MarkObserved() }, "Ready=True Ready"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, d)
			tt.do(set)
			set.Summarize()
			same(t, "", tt.want, texts(set.Conditions())[0])
		})
	}
}

func TestChanges(t *testing.T) {
	d := newDatabase(
		stored(condition.Ready, isTrue, "Ready", ""), stored("SecretFound", isTrue, "Found", ""), stored("Degraded", isFalse, "Fine", ""),
		stored("Scanned", isTrue, "Done", ""),
	)
	type change struct {
		Type     string
		Severity condition.Severity
	}
	for _, tt := range []struct {
		name string
		do   func(*condition.Set)
		want []change
	}{
		{"nothing but what is new", func(*condition.Set) {}, []change{{"BackupDone", condition.SeverityInfo}}},
		{"a message", healthy("Degraded", "Fine", "very"), []change{{"BackupDone", condition.SeverityInfo}}},
		{"a good reason", healthy("Degraded", "Better", ""), []change{{"Degraded", 0}, {"BackupDone", condition.SeverityInfo}}},
		{"a status", all(unhealthy("Degraded", condition.SeverityError, "Broken", "broken"), healthy("BackupDone", "Done", "")),
			[]change{{condition.Ready, condition.SeverityError}, {"Degraded", condition.SeverityError}, {"BackupDone", 0}}},
		{"a failure", failed(condition.SeverityWarning, "NoAnswer", ""),
			[]change{{condition.Ready, condition.SeverityWarning}, {"BackupDone", condition.SeverityInfo}}},
		{"a pause is none", func(s *condition.Set) { s.SetPaused("Wanted", "") }, []change{{"BackupDone", condition.SeverityInfo}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, d)
			tt.do(set)
			set.Summarize()
			var got []change
			for _, c := range set.Changes() {
				if want := get(t, set, c.Type); c.Condition != want {
					t.Errorf("%s is reported as %v, and is %v", c.Type, c.Condition, want)
				}
				got = append(got, change{c.Type, c.Severity})
			}
			same(t, "changes", tt.want, got)
		})
	}
}
