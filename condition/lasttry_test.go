// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
)

func TestLastTry(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*condition.Set)
		want string
	}{
		{"a good one that was stored", lastTryFailed([]string{"Degraded"}, "no permission"), "Degraded=Unknown LastTryFailed: no permission"},
		{"without a message", lastTryFailed([]string{"Degraded"}, ""), "Degraded=Unknown LastTryFailed: LastTryFailed"},
		{"a bad one that was stored stays", lastTryFailed([]string{"SecretFound"}, "no permission"), "SecretFound=False NotFound: it is missing"},
		{"one that was never evaluated", lastTryFailed([]string{"BackupDone"}, "no permission"), "BackupDone=Unknown NotReached: not evaluated yet"},
		{"one that was set good before it failed stays", all(healthy("Degraded", "Better", ""), lastTryFailed([]string{"Degraded"}, "no permission")), "Degraded=False Better"},
		{"one that was set bad before it failed stays", all(unhealthy("Degraded", condition.SeverityError, "Broken", "it is broken"), lastTryFailed([]string{"Degraded"}, "no permission")), "Degraded=True Broken: it is broken"},
		{"one that is healthy again", all(lastTryFailed([]string{"Degraded"}, "no permission"), lastTryPassed([]string{"Degraded"})), "Degraded=False LastTryPassed"},
		{"a passed try of one that was never evaluated changes nothing", lastTryPassed([]string{"BackupDone"}), "BackupDone=Unknown NotReached: not evaluated yet"},
		{"a passed try of a good one changes nothing", lastTryPassed([]string{"Degraded"}), "Degraded=False Fine"},
		{"a passed try of a bad one changes nothing", lastTryPassed([]string{"SecretFound"}), "SecretFound=False NotFound: it is missing"},
		{"one that is set afterwards", all(lastTryFailed([]string{"Degraded"}, "no permission"), healthy("Degraded", "Better", "")), "Degraded=False Better"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase(stored("Degraded", isFalse, "Fine", ""), stored("SecretFound", isFalse, "NotFound", "it is missing")))
			tt.do(set)
			var got string
			for _, text := range texts(set.Conditions()) {
				if conditionType, _, _ := strings.Cut(tt.want, "="); strings.HasPrefix(text, conditionType+"=") {
					got = text
				}
			}
			same(t, "condition", tt.want, got)
		})
	}
}

// An informational condition stays: nothing depends on it, and a step that sets it once, when it is
// Unknown, would set it again and again.
func TestLastTryOfAnInformationalCondition(t *testing.T) {
	obj := newDatabase(stored("Missed", isFalse, "OnSchedule", "none was missed"))
	declared := []condition.Declaration{{Type: "Missed", AbnormalTrue: true, Informational: true}}
	set, err := condition.NewSet(obj, condition.Options{Declared: declared, Now: later})
	must(t, err)
	set.MarkLastTryFailed([]string{"Missed"}, "no permission")
	if c, _ := set.Get("Missed"); c.Reason != "OnSchedule" {
		t.Errorf("got %s %s", c.Status, c.Reason)
	}
}

// Ready reports the failure, and does not count what is unknown because of it.
func TestLastTryFailedIsNotCounted(t *testing.T) {
	set := newSet(t, newDatabase(stored("Degraded", isFalse, "Fine", "")))
	set.MarkHealthy("SecretFound", "Found", "")
	set.MarkFailed(condition.SeverityError, "Forbidden", "no permission")
	set.MarkLastTryFailed([]string{"Degraded"}, "no permission")
	set.Summarize()
	same(t, "Ready", "no permission", get(t, set, condition.Ready).Message)
	same(t, "worst severity", 0, set.WorstSeverity())
}

func TestMarkObservedExcept(t *testing.T) {
	d := newDatabase(stored("Degraded", isFalse, "Fine", ""), stored("SecretFound", isTrue, "Found", ""))
	d.Generation = 5
	set := newSet(t, d)
	set.MarkObserved("SecretFound")
	for conditionType, want := range map[string]int64{"Degraded": 5, "SecretFound": 1} {
		same(t, conditionType, want, get(t, set, conditionType).ObservedGeneration)
	}
}

// Actions of one workflow set conditions at the same time. Run it with -race.
func TestSetIsSafeForConcurrentUse(t *testing.T) {
	set := newSet(t, newDatabase())
	var wg sync.WaitGroup
	for _, do := range []func(){
		func() { set.MarkHealthy("SecretFound", "Found", "") },
		func() { set.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "") },
		func() { set.MarkUnknown("BackupDone", "Asking", "") },
		func() { set.MarkFailed(condition.SeverityWarning, "Failed", "") },
		func() { set.MarkLastTryFailed([]string{"BackupDone"}, "") },
		func() { set.SetPaused("", "") },
		func() { set.MarkObserved() },
		func() { set.Summarize() },
		func() { set.KeepMessages() },
		func() { set.KeepSimilarMessages() },
		func() { set.MessagesChanged() },
		func() { set.Changes() },
		func() { set.Conditions() },
		func() { set.WorstSeverity() },
		func() { set.Get("SecretFound") },
		func() { set.Declared("SecretFound") },
	} {
		wg.Go(func() {
			for range 20 {
				do()
			}
		})
	}
	wg.Wait()
	set.Summarize()
	if got := texts(set.Conditions()); len(got) == 0 || got[0] != "Ready=False Broken: Degraded: Broken (and 2 more)" && got[0] != "Ready=False Broken: Degraded: Broken (and 1 more)" {
		t.Errorf("got %q", got)
	}
}

// A try that has passed and one that has failed, in one reconcile: the condition is about the
// generation that was stored, whether or not an earlier try had failed.
func TestLastTryFailedKeepsTheGeneration(t *testing.T) {
	for _, before := range []metav1.Condition{
		stored("Degraded", isFalse, "Fine", ""),
		stored("Degraded", metav1.ConditionUnknown, "LastTryFailed", "no permission"),
	} {
		obj := newDatabase(before)
		obj.Generation = before.ObservedGeneration + 1
		set := newSet(t, obj)
		set.MarkLastTryPassed([]string{"Degraded"})
		set.MarkLastTryFailed([]string{"Degraded"}, "no permission")
		if c, _ := set.Get("Degraded"); c.ObservedGeneration != before.ObservedGeneration {
			t.Errorf("after %s: generation %d, want %d", before.Reason, c.ObservedGeneration, before.ObservedGeneration)
		}
	}
}
