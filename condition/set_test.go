// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
)

// later is when the reconciles of the tests are: the conditions on the object are of noon.
var later = noon.Add(time.Hour + 300*time.Millisecond)

// newSet returns the conditions of d in a reconcile an hour after noon.
func newSet(t *testing.T, d *database, retired ...string) *condition.Set {
	t.Helper()
	set, err := condition.NewSet(d, condition.Options{Declared: declared, Retired: retired, Now: later})
	must(t, err)
	return set
}

// get returns a condition that must be there.
func get(t *testing.T, set *condition.Set, conditionType string) metav1.Condition {
	t.Helper()
	c, ok := set.Get(conditionType)
	if !ok {
		t.Fatalf("there is no %s", conditionType)
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

func TestNewSet(t *testing.T) {
	const notReached = "Unknown NotReached: not evaluated yet"
	for _, tt := range []struct {
		name    string
		before  []metav1.Condition
		retired []string
		want    []string
	}{
		{"nothing is there", nil, nil, []string{"SecretFound=" + notReached, "Degraded=" + notReached, "BackupDone=" + notReached}},
		{"some are there", []metav1.Condition{stored("Degraded", isFalse, "Fine", "")}, nil,
			[]string{"SecretFound=" + notReached, "Degraded=False Fine", "BackupDone=" + notReached}},
		{"others' conditions stay, in their order, behind ours",
			[]metav1.Condition{stored("Z", isTrue, "Z", ""), stored("Ready", isTrue, "Ready", ""), stored("A", isTrue, "A", "")}, nil,
			[]string{"Ready=True Ready", "SecretFound=" + notReached, "Degraded=" + notReached, "BackupDone=" + notReached, "Z=True Z", "A=True A"}},
		{"retired ones go, unless they are declared or computed",
			[]metav1.Condition{stored("Ready", isTrue, "Ready", ""), stored("Old", isTrue, "Old", ""), stored("SecretFound", isTrue, "Found", "")},
			[]string{"Old", "SecretFound", "Ready", "NeverThere"},
			[]string{"Ready=True Ready", "SecretFound=True Found", "Degraded=" + notReached, "BackupDone=" + notReached}},
		{"of ours that are there twice the first stays; others' are left alone",
			[]metav1.Condition{
				stored("SecretFound", isTrue, "First", ""), stored("Ready", isFalse, "First", ""), stored("A", isTrue, "First", ""),
				stored("SecretFound", isTrue, "Second", ""), stored("Ready", isTrue, "Second", ""), stored("A", isTrue, "Second", ""),
			}, nil,
			[]string{
				"Ready=False First", "SecretFound=True First", "Degraded=" + notReached, "BackupDone=" + notReached, "A=True First", "A=True Second",
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase(tt.before...), tt.retired...)
			same(t, "conditions", tt.want, texts(set.Conditions()))
		})
	}
}

func TestNewSetOfATypeWithoutConditions(t *testing.T) {
	if _, err := condition.NewSet(&metav1.ObjectMeta{}, condition.Options{Declared: declared, Now: later}); !errors.Is(err, condition.ErrNone) {
		t.Errorf("got error %v, want %v", err, condition.ErrNone)
	}
}

// What a reconcile does with its set does not show on the object before it is stored, nor the other
// way around.
func TestSetIsACopy(t *testing.T) {
	d := newDatabase(stored("SecretFound", isFalse, "NotFound", "it is gone"), stored("Old", isTrue, "Old", ""))
	want := slices.Clone(d.Status.Conditions)
	set := newSet(t, d, "Old")
	set.MarkHealthy("SecretFound", "Found", "")
	same(t, "on the object", want, d.Status.Conditions)
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
	same(t, "types", want, got)
}

// Two authors of the conditions of one object agree on their order.
func TestOrderOfPartialSets(t *testing.T) {
	d := &database{}
	store := func(mine string) {
		set, err := condition.NewSet(d, condition.Options{Declared: []condition.Declaration{{Type: mine}}, Partial: true, Now: later})
		must(t, err)
		set.MarkHealthy(mine, "Fine", "")
		must(t, set.Store(d))
	}
	for _, mine := range []string{"One", "Two", "One", "Two"} {
		store(mine)
	}
	conditions, err := condition.Of(d)
	must(t, err)
	same(t, "the last author has put its own first", []string{"One=True Fine", "Two=True Fine"}, texts(conditions))
}

func TestStore(t *testing.T) {
	d := newDatabase()
	set := newSet(t, d)
	set.Summarize()
	must(t, set.Store(d))
	same(t, "on the object (-set +object)", set.Conditions(), d.Status.Conditions)
	if err := set.Store(&metav1.ObjectMeta{}); !errors.Is(err, condition.ErrNone) {
		t.Errorf("got error %v, want %v", err, condition.ErrNone)
	}
}
