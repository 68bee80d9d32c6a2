// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
)

// Each way to set a condition, with both polarities.
func TestMark(t *testing.T) {
	for _, tt := range []struct {
		name          string
		do            func(*condition.Set)
		conditionType string
		want          string
	}{
		{"good", healthy("SecretFound", "Found", ""), "SecretFound", "SecretFound=True Found"},
		{"good, with a message", healthy("SecretFound", "Found", "it is there"), "SecretFound", "SecretFound=True Found: it is there"},
		{"good is False", healthy("Degraded", "Fine", ""), "Degraded", "Degraded=False Fine"},
		{"bad", unhealthy("SecretFound", condition.SeverityError, "NotFound", "gone"), "SecretFound", "SecretFound=False NotFound: gone"},
		{"bad is True", unhealthy("Degraded", condition.SeverityInfo, "Slow", "slow"), "Degraded", "Degraded=True Slow: slow"},
		{"bad without a message", unhealthy("Degraded", condition.SeverityInfo, "Slow", ""), "Degraded", "Degraded=True Slow: Slow"},
		{"unknown", unknown("Degraded", "NoAnswer", "silence"), "Degraded", "Degraded=Unknown NoAnswer: silence"},
		{"unknown without a message", unknown("Degraded", "NoAnswer", ""), "Degraded", "Degraded=Unknown NoAnswer: NoAnswer"},
		{"paused", func(s *condition.Set) { s.SetPaused("Wanted", "its owner wants it") }, "Paused", "Paused=True Wanted: its owner wants it"},
		{"paused without a message", func(s *condition.Set) { s.SetPaused("Wanted", "") }, "Paused", "Paused=True Wanted: Wanted"},
		{"a reason of another system", unhealthy("Degraded", condition.SeverityError, "quota-exceeded", "all 5 are used"), "Degraded", "Degraded=True QuotaExceeded: quota-exceeded: all 5 are used"},
		{"a reason that is a sentence", unknown("Degraded", "not found: über 9", ""), "Degraded", "Degraded=Unknown NotFoundBer9: not found: über 9"},
		{"a reason that is a number", healthy("Degraded", "429", "slow"), "Degraded", "Degraded=False Reason429: 429: slow"},
		{"no reason", unhealthy("Degraded", condition.SeverityInfo, "", "slow"), "Degraded", "Degraded=True Reason: slow"},
		{"a reason in the message", unhealthy("Degraded", condition.SeverityInfo, "too slow", "too slow: 5 s"), "Degraded", "Degraded=True TooSlow: too slow: 5 s"},
		{"the last counts", all(healthy("Degraded", "Fine", ""), unknown("Degraded", "A", "b")), "Degraded", "Degraded=Unknown A: b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase())
			tt.do(set)
			c := get(t, set, tt.conditionType)
			same(t, "", tt.want, texts([]metav1.Condition{c})[0])
			if c.ObservedGeneration != 1 || !c.LastTransitionTime.Time.Equal(noon.Add(time.Hour)) {
				t.Errorf("got generation %d and time %v, want 1 and a whole hour after noon", c.ObservedGeneration, c.LastTransitionTime)
			}
		})
	}
}

func TestNoLongerPaused(t *testing.T) {
	set := newSet(t, newDatabase(stored(condition.Paused, isTrue, "Paused", "its owner wants it")))
	set.SetPaused("", "")
	if _, ok := set.Get(condition.Paused); ok {
		t.Error("it is still paused")
	}
}

// What can only be a mistake in the operator's code panics, where it is made.
func TestMistakesOfTheCaller(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*condition.Set)
		want string
	}{
		{"not declared", healthy("Reddy", "A", ""), "Reddy is set but not declared"},
		{"bad, not declared", unhealthy("Reddy", condition.SeverityInfo, "A", ""), "not declared"},
		{"unknown, not declared", unknown("Reddy", "A", ""), "not declared"},
		{"computed", healthy("Ready", "A", ""), "not declared"},
		{"no severity", unhealthy("Degraded", 0, "A", ""), "Degraded is set without a severity: use SeverityInfo, SeverityWarning or SeverityError"},
		{"a severity that is none", unhealthy("Degraded", 4, "A", ""), "without a severity"},
		{"failed without a severity", failed(0, "A", ""), "a failure is set without a severity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, tt.want) {
					t.Errorf("got panic %q, want %q", got, tt.want)
				}
			}()
			tt.do(newSet(t, newDatabase()))
		})
	}
}

func TestMarkObserved(t *testing.T) {
	d := newDatabase(stored("SecretFound", isTrue, "Found", ""), stored("Scanned", isTrue, "Done", ""))
	d.Generation = 5
	set := newSet(t, d)
	same(t, "before MarkObserved, SecretFound", 1, get(t, set, "SecretFound").ObservedGeneration)
	set.MarkObserved()
	for conditionType, want := range map[string]int64{"SecretFound": 5, "Degraded": 5, "BackupDone": 5, "Scanned": 1} {
		same(t, conditionType, want, get(t, set, conditionType).ObservedGeneration)
	}
}

// The transition time moves if and only if the status that is stored is another than the one
// before.
func TestTransitionTime(t *testing.T) {
	hour := metav1.NewTime(noon.Add(time.Hour))
	for _, tt := range []struct {
		name   string
		before metav1.Condition
		do     func(*condition.Set)
		want   metav1.Time
	}{
		{"the same", stored("Degraded", isFalse, "Fine", ""), healthy("Degraded", "Fine", ""), noon},
		{"another message", stored("Degraded", isFalse, "Fine", ""), healthy("Degraded", "Fine", "very"), noon},
		{"another reason", stored("Degraded", isFalse, "Fine", ""), healthy("Degraded", "Better", ""), noon},
		{"another status", stored("Degraded", isFalse, "Fine", ""), unknown("Degraded", "Fine", ""), hour},
		{"not set", stored("Degraded", isFalse, "Fine", ""), func(*condition.Set) {}, noon},
		{"observed", stored("Degraded", isFalse, "Fine", ""), func(s *condition.Set) { s.MarkObserved() }, noon},
		{"there and back in one reconcile", stored("Degraded", isFalse, "Fine", ""),
			all(unknown("Degraded", "Asking", "asks"), healthy("Degraded", "Fine", "")), noon},
		{"a time that was missing", metav1.Condition{Type: "Degraded", Status: isFalse, Reason: "Fine"},
			healthy("Degraded", "Fine", ""), hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase(tt.before))
			tt.do(set)
			if got := get(t, set, "Degraded").LastTransitionTime; !got.Equal(&tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// What goes and comes back within one reconcile was not away.
func TestTransitionTimeOfWhatComesBack(t *testing.T) {
	set := newSet(t, newDatabase(stored(condition.Reconciling, isTrue, "Waiting", "waits"), stored(condition.Paused, isTrue, "Wanted", "its owner wants it")))
	set.SetPaused("", "")
	set.SetPaused("Wanted", "its owner wants it")
	set.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "broken")
	set.Summarize()
	set.MarkHealthy("Degraded", "Fine", "")
	set.Summarize()
	for _, conditionType := range []string{condition.Reconciling, condition.Paused} {
		if got := get(t, set, conditionType).LastTransitionTime; !got.Equal(&noon) {
			t.Errorf("%s is of %v, want %v", conditionType, got, noon)
		}
	}
}

func TestResetToPaused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before []metav1.Condition
		want   []string
	}{
		{"all else stays as it was",
			[]metav1.Condition{stored("Degraded", isTrue, "Slow", "slow"), stored(condition.Ready, isTrue, "Ready", ""), stored("Old", isTrue, "Old", "")},
			[]string{"Ready=True Ready", "Paused=True Wanted: its owner wants it", "Degraded=True Slow: slow", "Old=True Old"}},
		{"never reconciled", nil,
			[]string{"Ready=Unknown Wanted: its owner wants it", "Paused=True Wanted: its owner wants it"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase(tt.before...), "Old")
			set.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "broken")
			set.MarkFailed(condition.SeverityError, "NoAnswer", "")
			set.Summarize()
			set.ResetToPaused("Wanted", "its owner wants it")
			same(t, "conditions", tt.want, texts(set.Conditions()))
			same(t, "worst severity", 0, set.WorstSeverity())
		})
	}
}
