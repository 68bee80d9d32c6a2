// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
)

// later is when the reconciles of the tests are: the conditions on the object are of noon.
var later = noon.Add(time.Hour + 300*time.Millisecond)

// newSet returns the conditions of d in a reconcile an hour after noon.
func newSet(t *testing.T, d *database, retired ...string) *condition.Set {
	t.Helper()
	set, err := condition.NewSet(d, declared, retired, later)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// get returns a condition that must be there.
func get(t *testing.T, set *condition.Set, kind string) metav1.Condition {
	t.Helper()
	c, ok := set.Get(kind)
	if !ok {
		t.Fatalf("there is no %s", kind)
	}
	return c
}

// texts returns "Type=Status Reason: message" of each condition.
func texts(conditions []metav1.Condition) []string {
	var all []string
	for _, c := range conditions {
		text := c.Type + "=" + string(c.Status) + " " + c.Reason
		if c.Message != "" {
			text += ": " + c.Message
		}
		all = append(all, text)
	}
	return all
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name  string
		types []string
		want  string
	}{
		{"none", nil, ""},
		{"two", []string{"SecretFound", "example.com/SecretFound"}, ""},
		{"the longest", []string{strings.Repeat("a", 316)}, ""},
		{"too long", []string{strings.Repeat("a", 317)}, "a type looks like"},
		{"empty", []string{""}, "a type looks like"},
		{"a space", []string{"Secret found"}, `"Secret found" can't be declared: a type looks like "SecretFound" or "example.com/SecretFound"`},
		{"a line", []string{"SecretFound\n"}, "a type looks like"},
		{"twice", []string{"A", "B", "A"}, `"A" is declared twice`},
		{"Ready", []string{"Ready"}, `"Ready" can't be declared: it is computed`},
		{"Reconciling", []string{"A", "Reconciling"}, "it is computed"},
		{"Stalled", []string{"Stalled"}, "it is computed"},
		{"Paused", []string{"Paused"}, "it is computed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var declarations []condition.Declaration
			for _, kind := range tt.types {
				declarations = append(declarations, condition.Declaration{Type: kind})
			}
			err := condition.Check(declarations)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestNewSet(t *testing.T) {
	const notReached = "Unknown NotReached: it was not looked at yet"
	for _, tt := range []struct {
		name    string
		before  []metav1.Condition
		retired []string
		want    []string
	}{
		{"nothing is there", nil, nil, []string{"SecretFound=" + notReached, "Degraded=" + notReached, "BackupDone=" + notReached}},
		{
			"some are there", []metav1.Condition{stored("Degraded", isFalse, "Fine", "")}, nil,
			[]string{"SecretFound=" + notReached, "Degraded=False Fine", "BackupDone=" + notReached},
		},
		{
			"others' conditions stay, in their order, behind ours",
			[]metav1.Condition{stored("Z", isTrue, "Z", ""), stored("Ready", isTrue, "Ready", ""), stored("A", isTrue, "A", "")}, nil,
			[]string{"Ready=True Ready", "SecretFound=" + notReached, "Degraded=" + notReached, "BackupDone=" + notReached, "Z=True Z", "A=True A"},
		},
		{
			"retired ones go, unless they are declared or computed",
			[]metav1.Condition{stored("Ready", isTrue, "Ready", ""), stored("Old", isTrue, "Old", ""), stored("SecretFound", isTrue, "Found", "")},
			[]string{"Old", "SecretFound", "Ready", "NeverThere"},
			[]string{"Ready=True Ready", "SecretFound=True Found", "Degraded=" + notReached, "BackupDone=" + notReached},
		},
		{
			"of ours that are there twice the first stays; others' are left alone",
			[]metav1.Condition{
				stored("SecretFound", isTrue, "First", ""), stored("Ready", isFalse, "First", ""), stored("A", isTrue, "First", ""),
				stored("SecretFound", isTrue, "Second", ""), stored("Ready", isTrue, "Second", ""), stored("A", isTrue, "Second", ""),
			}, nil,
			[]string{
				"Ready=False First", "SecretFound=True First", "Degraded=" + notReached, "BackupDone=" + notReached, "A=True First", "A=True Second",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase(tt.before...), tt.retired...)
			if diff := cmp.Diff(tt.want, texts(set.Conditions())); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewSetOfATypeWithoutConditions(t *testing.T) {
	if _, err := condition.NewSet(&metav1.ObjectMeta{}, declared, nil, later); !errors.Is(err, condition.ErrNone) {
		t.Errorf("got error %v, want %v", err, condition.ErrNone)
	}
}

// What a reconcile does with its set does not show on the object before it is stored, nor the other way around.
func TestSetIsACopy(t *testing.T) {
	d := newDatabase(stored("SecretFound", isFalse, "NotFound", "it is gone"), stored("Old", isTrue, "Old", ""))
	want := slices.Clone(d.Status.Conditions)
	set := newSet(t, d, "Old")
	set.MarkHealthy("SecretFound", "Found", "")
	if diff := cmp.Diff(want, d.Status.Conditions); diff != "" {
		t.Errorf("on the object (-want +got):\n%s", diff)
	}
	d.Status.Conditions[0] = stored("SecretFound", isTrue, "Found", "a step has written here itself")
	set.Summarize()
	if changes := set.Changes(); len(changes) == 0 || changes[1].Type != "SecretFound" {
		t.Errorf("SecretFound is not among the changes %v", changes)
	}
	set.Conditions()[0].Reason = "Overwritten"
	if got := get(t, set, condition.Ready).Reason; got == "Overwritten" {
		t.Error("what Conditions returns is the set's own")
	}
}

// Each way to set a condition, with both polarities.
func TestSetting(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*condition.Set)
		kind string
		want string
	}{
		{"good", func(s *condition.Set) { s.MarkHealthy("SecretFound", "Found", "") }, "SecretFound", "SecretFound=True Found"},
		{"good, with a message", func(s *condition.Set) { s.MarkHealthy("SecretFound", "Found", "it is there") }, "SecretFound", "SecretFound=True Found: it is there"},
		{"good is False", func(s *condition.Set) { s.MarkHealthy("Degraded", "Fine", "") }, "Degraded", "Degraded=False Fine"},
		{"bad", func(s *condition.Set) { s.MarkUnhealthy("SecretFound", condition.SeverityError, "NotFound", "gone") }, "SecretFound", "SecretFound=False NotFound: gone"},
		{"bad is True", func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "slow") }, "Degraded", "Degraded=True Slow: slow"},
		{"bad without a message", func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "") }, "Degraded", "Degraded=True Slow: Slow"},
		{"unknown", func(s *condition.Set) { s.MarkUnknown("Degraded", "NoAnswer", "silence") }, "Degraded", "Degraded=Unknown NoAnswer: silence"},
		{"unknown without a message", func(s *condition.Set) { s.MarkUnknown("Degraded", "NoAnswer", "") }, "Degraded", "Degraded=Unknown NoAnswer: NoAnswer"},
		{"paused", func(s *condition.Set) { s.SetPaused("Wanted", "its owner wants it") }, "Paused", "Paused=True Wanted: its owner wants it"},
		{"paused without a message", func(s *condition.Set) { s.SetPaused("Wanted", "") }, "Paused", "Paused=True Wanted: Wanted"},
		{"the last counts", func(s *condition.Set) { s.MarkHealthy("Degraded", "Fine", ""); s.MarkUnknown("Degraded", "A", "b") }, "Degraded", "Degraded=Unknown A: b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase())
			tt.do(set)
			c := get(t, set, tt.kind)
			if got := texts([]metav1.Condition{c})[0]; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if c.ObservedGeneration != 1 || !c.LastTransitionTime.Time.Equal(noon.Add(time.Hour)) {
				t.Errorf("got generation %d and time %v, want 1 and a whole hour after noon", c.ObservedGeneration, c.LastTransitionTime)
			}
		})
	}
}

func TestNotPausedAnyMore(t *testing.T) {
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
		{"not declared", func(s *condition.Set) { s.MarkHealthy("Reddy", "A", "") }, "Reddy is set but not declared"},
		{"bad, not declared", func(s *condition.Set) { s.MarkUnhealthy("Reddy", condition.SeverityInfo, "A", "") }, "not declared"},
		{"unknown, not declared", func(s *condition.Set) { s.MarkUnknown("Reddy", "A", "") }, "not declared"},
		{"computed", func(s *condition.Set) { s.MarkHealthy("Ready", "A", "") }, "not declared"},
		{"no severity", func(s *condition.Set) { s.MarkUnhealthy("Degraded", 0, "A", "") }, "Degraded is set without a severity: use Info, Warning or Error"},
		{"a severity that is none", func(s *condition.Set) { s.MarkUnhealthy("Degraded", 4, "A", "") }, "without a severity"},
		{"failed without a severity", func(s *condition.Set) { s.MarkFailed(0, "A", "") }, "what has failed is set without a severity"},
		{"no reason", func(s *condition.Set) { s.MarkHealthy("Degraded", "", "") }, `reason "" of Degraded: a reason looks like "SecretNotFound"`},
		{"a reason with a space", func(s *condition.Set) { s.MarkUnknown("Degraded", "not found", "") }, `reason "not found" of Degraded`},
		{"a reason that is too long", func(s *condition.Set) { s.MarkUnknown("Degraded", strings.Repeat("a", 1025), "") }, "of Degraded"},
		{"failed without a reason", func(s *condition.Set) { s.MarkFailed(condition.SeverityInfo, "", "") }, `reason "" of what has failed`},
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

func TestSummarise(t *testing.T) {
	allGood := func(s *condition.Set) {
		s.MarkHealthy("SecretFound", "Found", "")
		s.MarkHealthy("Degraded", "Fine", "")
	}
	for _, tt := range []struct {
		name  string
		do    func(*condition.Set)
		want  []string // of what is computed
		worst condition.Severity
	}{
		{"all good", allGood, []string{"Ready=True Ready"}, 0},
		{
			"nothing was set", func(*condition.Set) {},
			[]string{
				"Ready=False NotReached: SecretFound: it was not looked at yet",
				"Reconciling=True NotReached: SecretFound: it was not looked at yet",
			}, 0,
		},
		{
			"info", func(s *condition.Set) {
				allGood(s)
				s.MarkUnhealthy("SecretFound", condition.SeverityInfo, "NotFound", "waits for it")
			},
			[]string{"Ready=False NotFound: SecretFound: waits for it", "Reconciling=True NotFound: SecretFound: waits for it"}, condition.SeverityInfo,
		},
		{
			"warning", func(s *condition.Set) {
				allGood(s)
				s.MarkUnhealthy("Degraded", condition.SeverityWarning, "Slow", "it is slow")
			},
			[]string{"Ready=False Slow: Degraded: it is slow", "Reconciling=True Slow: Degraded: it is slow"}, condition.SeverityWarning,
		},
		{
			"error", func(s *condition.Set) {
				allGood(s)
				s.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "replace the disk")
			},
			[]string{"Ready=False Broken: Degraded: replace the disk", "Stalled=True Broken: Degraded: replace the disk"}, condition.SeverityError,
		},
		{
			"unknown", func(s *condition.Set) { allGood(s); s.MarkUnknown("Degraded", "NoAnswer", "silence") },
			[]string{"Ready=False NoAnswer: Degraded: silence", "Reconciling=True NoAnswer: Degraded: silence"}, condition.SeverityInfo,
		},
		{
			"what informs does not count", func(s *condition.Set) {
				allGood(s)
				s.MarkUnhealthy("BackupDone", condition.SeverityError, "Full", "the disk is full")
			},
			[]string{"Ready=True Ready"}, 0,
		},
		{
			"the worst", func(s *condition.Set) {
				s.MarkUnhealthy("SecretFound", condition.SeverityInfo, "NotFound", "waits for it")
				s.MarkUnhealthy("Degraded", condition.SeverityWarning, "Slow", "it is slow")
			},
			[]string{"Ready=False Slow: Degraded: it is slow (and 1 more)", "Reconciling=True Slow: Degraded: it is slow (and 1 more)"}, condition.SeverityWarning,
		},
		{
			"the first declared of those that are equally bad", func(s *condition.Set) {
				s.MarkUnhealthy("Degraded", condition.SeverityWarning, "Slow", "it is slow")
				s.MarkUnhealthy("SecretFound", condition.SeverityWarning, "NotFound", "it is gone")
			},
			[]string{"Ready=False NotFound: SecretFound: it is gone (and 1 more)", "Reconciling=True NotFound: SecretFound: it is gone (and 1 more)"}, condition.SeverityWarning,
		},
		{
			"the type is not said twice", func(s *condition.Set) {
				allGood(s)
				s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "Degraded: it is slow")
			},
			[]string{"Ready=False Slow: Degraded: it is slow", "Reconciling=True Slow: Degraded: it is slow"}, condition.SeverityInfo,
		},
		{
			"bad and then good", func(s *condition.Set) {
				s.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "broken")
				allGood(s)
			},
			[]string{"Ready=True Ready"}, 0,
		},
		{
			"failed", func(s *condition.Set) {
				allGood(s)
				s.MarkFailed(condition.SeverityWarning, "NoAnswer", "calling the server: no answer")
			},
			[]string{"Ready=False NoAnswer: calling the server: no answer", "Reconciling=True NoAnswer: calling the server: no answer"}, 0,
		},
		{
			"failed without a message", func(s *condition.Set) { allGood(s); s.MarkFailed(condition.SeverityError, "NoAnswer", "") },
			[]string{"Ready=False NoAnswer: NoAnswer", "Stalled=True NoAnswer: NoAnswer"}, 0,
		},
		{
			"failed twice: the worst stays", func(s *condition.Set) {
				allGood(s)
				s.MarkFailed(condition.SeverityInfo, "A", "first")
				s.MarkFailed(condition.SeverityError, "B", "second")
				s.MarkFailed(condition.SeverityError, "C", "third")
			},
			[]string{"Ready=False B: second", "Stalled=True B: second"}, 0,
		},
		{
			"failed, and a condition that is as bad", func(s *condition.Set) {
				allGood(s)
				s.MarkUnhealthy("Degraded", condition.SeverityWarning, "Slow", "it is slow")
				s.MarkFailed(condition.SeverityWarning, "NoAnswer", "no answer")
			},
			[]string{"Ready=False NoAnswer: no answer (and 1 more)", "Reconciling=True NoAnswer: no answer (and 1 more)"}, condition.SeverityWarning,
		},
		{
			"failed, and a condition that is worse", func(s *condition.Set) {
				allGood(s)
				s.MarkFailed(condition.SeverityWarning, "NoAnswer", "no answer")
				s.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "broken")
			},
			[]string{"Ready=False Broken: Degraded: broken (and 1 more)", "Stalled=True Broken: Degraded: broken (and 1 more)"}, condition.SeverityError,
		},
		{
			"summarized again", func(s *condition.Set) {
				s.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "broken")
				s.Summarize()
				allGood(s)
				s.MarkUnhealthy("SecretFound", condition.SeverityInfo, "NotFound", "waits for it")
			},
			[]string{"Ready=False NotFound: SecretFound: waits for it", "Reconciling=True NotFound: SecretFound: waits for it"}, condition.SeverityInfo,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Whatever an earlier reconcile has computed is replaced.
			set := newSet(t, newDatabase(
				stored(condition.Ready, isFalse, "Old", "old"), stored(condition.Reconciling, isTrue, "Old", "old"), stored(condition.Stalled, isTrue, "Old", "old")))
			tt.do(set)
			set.Summarize()
			got := slices.DeleteFunc(set.Conditions(), func(c metav1.Condition) bool { return set.Declared(c.Type) })
			if diff := cmp.Diff(tt.want, texts(got)); diff != "" {
				t.Errorf("what is computed (-want +got):\n%s", diff)
			}
			if got := set.Worst(); got != tt.worst {
				t.Errorf("the worst declared one is of severity %v, want %v", got, tt.worst)
			}
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
		{"none was looked at again", func(*condition.Set) {}, "Ready=False NotReached: SecretFound: it was not looked at since the spec has changed"},
		{"one was not looked at again", func(s *condition.Set) { s.MarkHealthy("SecretFound", "Found", "") },
			"Ready=False NotReached: Degraded: it was not looked at since the spec has changed"},
		{"another is worse", func(s *condition.Set) { s.MarkUnknown("SecretFound", "NoAnswer", "silence") }, "Ready=False NoAnswer: SecretFound: silence"},
		{"set again", func(s *condition.Set) {
			s.MarkHealthy("SecretFound", "Found", "")
			s.MarkHealthy("Degraded", "Fine", "")
		}, "Ready=True Ready"},
		{"looked at", func(s *condition.Set) { s.Observed() }, "Ready=True Ready"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, d)
			tt.do(set)
			set.Summarize()
			if got := texts(set.Conditions())[0]; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestObserved(t *testing.T) {
	d := newDatabase(stored("SecretFound", isTrue, "Found", ""), stored("Scanned", isTrue, "Done", ""))
	d.Generation = 5
	set := newSet(t, d)
	if got := get(t, set, "SecretFound").ObservedGeneration; got != 1 {
		t.Errorf("before it was looked at, SecretFound is about generation %d, want 1", got)
	}
	set.Observed()
	for kind, want := range map[string]int64{"SecretFound": 5, "Degraded": 5, "BackupDone": 5, "Scanned": 1} {
		if got := get(t, set, kind).ObservedGeneration; got != want {
			t.Errorf("%s is about generation %d, want %d", kind, got, want)
		}
	}
}

// The transition time moves if and only if the status that is stored is another than the one before.
func TestTransitionTime(t *testing.T) {
	hour := metav1.NewTime(noon.Add(time.Hour))
	for _, tt := range []struct {
		name   string
		before metav1.Condition
		do     func(*condition.Set)
		want   metav1.Time
	}{
		{"the same", stored("Degraded", isFalse, "Fine", ""), func(s *condition.Set) { s.MarkHealthy("Degraded", "Fine", "") }, noon},
		{"another message", stored("Degraded", isFalse, "Fine", ""), func(s *condition.Set) { s.MarkHealthy("Degraded", "Fine", "very") }, noon},
		{"another reason", stored("Degraded", isFalse, "Fine", ""), func(s *condition.Set) { s.MarkHealthy("Degraded", "Better", "") }, noon},
		{"another status", stored("Degraded", isFalse, "Fine", ""), func(s *condition.Set) { s.MarkUnknown("Degraded", "Fine", "") }, hour},
		{"not set", stored("Degraded", isFalse, "Fine", ""), func(*condition.Set) {}, noon},
		{"looked at", stored("Degraded", isFalse, "Fine", ""), func(s *condition.Set) { s.Observed() }, noon},
		{
			"to and fro in one reconcile", stored("Degraded", isFalse, "Fine", ""),
			func(s *condition.Set) {
				s.MarkUnknown("Degraded", "Asking", "asks")
				s.MarkHealthy("Degraded", "Fine", "")
			}, noon,
		},
		{
			"a time that was missing", metav1.Condition{Type: "Degraded", Status: isFalse, Reason: "Fine"},
			func(s *condition.Set) { s.MarkHealthy("Degraded", "Fine", "") }, hour,
		},
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
	for _, kind := range []string{condition.Reconciling, condition.Paused} {
		if got := get(t, set, kind).LastTransitionTime; !got.Equal(&noon) {
			t.Errorf("%s is of %v, want %v", kind, got, noon)
		}
	}
}

func TestHoldNumbers(t *testing.T) {
	before := stored("Degraded", isTrue, "Slow", "try 1 took 20ms")
	for _, tt := range []struct {
		name       string
		generation int64
		do         func(*condition.Set)
		want       string
	}{
		{"other numbers", 1, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "try 2 took 30ms") }, "try 1 took 20ms"},
		{"other words", 1, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "try 2 was lost") }, "try 2 was lost"},
		{"another reason", 1, func(s *condition.Set) {
			s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slower", "try 2 took 30ms")
		}, "try 2 took 30ms"},
		{"another status", 1, func(s *condition.Set) { s.MarkHealthy("Degraded", "Slow", "try 2 took 30ms") }, "try 2 took 30ms"},
		{"another spec, which is written anyway", 2, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "try 2 took 30ms") }, "try 2 took 30ms"},
		{"to and fro", 1, func(s *condition.Set) {
			s.MarkUnknown("Degraded", "Asking", "asks")
			s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "try 2 took 30ms")
		}, "try 1 took 20ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDatabase(before)
			d.Generation = tt.generation
			set := newSet(t, d)
			tt.do(set)
			if got := get(t, set, "Degraded").Message; !strings.HasPrefix(got, "try 2") {
				t.Errorf("got %q before it is held: progress that counts must be written", got)
			}
			held := set.HoldNumbers()
			if got := get(t, set, "Degraded").Message; got != tt.want || held != strings.HasPrefix(got, "try 1") {
				t.Errorf("got %q, held %t, want %q", got, held, tt.want)
			}
		})
	}
}

func TestHoldMessages(t *testing.T) {
	d := newDatabase(stored("SecretFound", isTrue, "Found", "old"), stored("Degraded", isTrue, "Slow", "old"), stored("BackupDone", isFalse, "Full", "old"))
	for _, tt := range []struct {
		name       string
		generation int64
		do         func(*condition.Set)
		isNew      bool
		want       string // of SecretFound, Degraded and BackupDone
	}{
		{"nothing is new", 1, func(*condition.Set) {}, false, "old old old"},
		{"a message", 1, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "new") }, true, "old old old"},
		{"a reason", 1, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slower", "new") }, false, "old new old"},
		{"a status", 1, func(s *condition.Set) { s.MarkUnknown("Degraded", "Slow", "new") }, false, "old new old"},
		{"a message and a reason", 1, func(s *condition.Set) {
			s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "new")
			s.MarkHealthy("BackupDone", "Done", "new")
		}, true, "old old new"},
		{"a message about another spec", 2, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "new") }, true, "old new old"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := d.copy()
			d.Generation = tt.generation
			set := newSet(t, d)
			tt.do(set)
			if got := set.NewMessages(); got != tt.isNew {
				t.Errorf("there are new messages: got %t, want %t", got, tt.isNew)
			}
			held := set.HoldMessages()
			if want := tt.isNew && tt.generation == 1; held != want {
				t.Errorf("messages were held: got %t, want %t", held, want)
			}
			var got []string
			for _, kind := range kinds {
				got = append(got, get(t, set, kind).Message)
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
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
		{"a message", func(s *condition.Set) { s.MarkHealthy("Degraded", "Fine", "very") }, []change{{"BackupDone", condition.SeverityInfo}}},
		{"a good reason", func(s *condition.Set) { s.MarkHealthy("Degraded", "Better", "") }, []change{{"Degraded", 0}, {"BackupDone", condition.SeverityInfo}}},
		{
			"a status", func(s *condition.Set) {
				s.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "broken")
				s.MarkHealthy("BackupDone", "Done", "")
			},
			[]change{{condition.Ready, condition.SeverityError}, {"Degraded", condition.SeverityError}, {"BackupDone", 0}},
		},
		{
			"a failure", func(s *condition.Set) { s.MarkFailed(condition.SeverityWarning, "NoAnswer", "") },
			[]change{{condition.Ready, condition.SeverityWarning}, {"BackupDone", condition.SeverityInfo}},
		},
		{"a pause is none", func(s *condition.Set) { s.SetPaused("Wanted", "") }, []change{{"BackupDone", condition.SeverityInfo}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, d)
			tt.do(set)
			set.Summarize()
			var got []change
			for _, c := range set.Changes() {
				if want := get(t, set, c.Type); c.Condition != want {
					t.Errorf("%s is told as %v, and is %v", c.Type, c.Condition, want)
				}
				got = append(got, change{c.Type, c.Severity})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// The order is that of the declarations, whatever was set or found first.
func TestOrder(t *testing.T) {
	set := newSet(t, newDatabase(stored("Z", isTrue, "Z", ""), stored("BackupDone", isTrue, "Done", ""), stored("A", isTrue, "A", "")))
	set.SetPaused("Wanted", "")
	set.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "")
	set.Summarize()
	var got []string
	for _, c := range set.Conditions() {
		got = append(got, c.Type)
	}
	want := []string{condition.Ready, condition.Reconciling, condition.Paused, "SecretFound", "Degraded", "BackupDone", "Z", "A"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func TestOnlyPaused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before []metav1.Condition
		want   []string
	}{
		{
			"all else stays as it was",
			[]metav1.Condition{stored("Degraded", isTrue, "Slow", "slow"), stored(condition.Ready, isTrue, "Ready", ""), stored("Old", isTrue, "Old", "")},
			[]string{"Ready=True Ready", "Paused=True Wanted: its owner wants it", "Degraded=True Slow: slow", "Old=True Old"},
		},
		{
			"never looked at", nil,
			[]string{"Ready=Unknown Wanted: its owner wants it", "Paused=True Wanted: its owner wants it"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase(tt.before...), "Old")
			set.MarkUnhealthy("Degraded", condition.SeverityError, "Broken", "broken")
			set.MarkFailed(condition.SeverityError, "NoAnswer", "")
			set.Summarize()
			set.OnlyPaused("Wanted", "its owner wants it")
			if diff := cmp.Diff(tt.want, texts(set.Conditions())); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if got := set.Worst(); got != 0 {
				t.Errorf("something is still %v", got)
			}
		})
	}
}

// A message that nobody would read is cut, and what is not text is replaced: it would come back from the API server as something else.
func TestLongMessages(t *testing.T) {
	for _, tt := range []struct{ name, message, want string }{
		{"as long as it may be", strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		{"longer", strings.Repeat("a", 1025), strings.Repeat("a", 1020) + " ..."},
		{"in the middle of a letter", strings.Repeat("ü", 513), strings.Repeat("ü", 510) + " ..."},
		{"in the middle of a letter, by a byte", "a" + strings.Repeat("ü", 513), "a" + strings.Repeat("ü", 509) + " ..."},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase())
			set.MarkUnhealthy("SecretFound", condition.SeverityInfo, "A", tt.message)
			set.MarkUnhealthy("Degraded", condition.SeverityInfo, "B", "another")
			if got := get(t, set, "SecretFound").Message; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			set.Summarize()
			got := get(t, set, condition.Ready).Message
			if len(got) > 1024 || !utf8.ValidString(got) || !strings.HasPrefix(got, "SecretFound: ") || !strings.HasSuffix(got, " (and 1 more)") {
				t.Errorf("Ready says %q, want 1,024 bytes of text that end with how many more there are", got)
			}
		})
	}
}

func TestStore(t *testing.T) {
	d := newDatabase()
	set := newSet(t, d)
	set.Summarize()
	if err := set.Store(d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(set.Conditions(), d.Status.Conditions); diff != "" {
		t.Errorf("on the object (-set +object):\n%s", diff)
	}
	if err := set.Store(&metav1.ObjectMeta{}); !errors.Is(err, condition.ErrNone) {
		t.Errorf("got error %v, want %v", err, condition.ErrNone)
	}
}
