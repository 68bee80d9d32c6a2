// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/journal"
)

func TestCauseString(t *testing.T) {
	for _, tt := range []struct {
		cause journal.Cause
		want  string
	}{
		{journal.Cause{Kind: journal.CauseOwnChange}, "own change"},
		{journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated"}, "own change (updated)"},
		{journal.Cause{Kind: journal.CauseOwnWrite, Verb: "updated", Times: 2}, "own write (updated) 2 times"},
		{journal.Cause{Kind: journal.CauseChildChange, Verb: "deleted", Object: secret, Times: 1}, "Secret default/db deleted"},
		{journal.Cause{Kind: journal.CauseForeignChange, Object: journal.Object{Kind: "Node", Name: "n1"}}, "Node n1"},
		{journal.Cause{Kind: journal.CauseForeignChange, Object: journal.Object{Kind: "Node"}, Times: 30}, "Node 30 times"},
		{journal.Cause{Kind: journal.CauseChildChange, Verb: "updated"}, "child change (updated)"},
		{journal.Cause{Kind: journal.CauseTimer}, "timer"},
		{journal.Cause{Kind: journal.CauseBackoff, Times: 3}, "backoff 3 times"},
		{journal.Cause{Kind: journal.CauseStart}, "start"},
		{journal.Cause{Kind: journal.CauseUnknown}, "unknown"},
	} {
		if got := tt.cause.String(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.cause, got, tt.want)
		}
	}
}

func TestMergeCauses(t *testing.T) {
	child := func(verb string, times int) journal.Cause {
		return journal.Cause{Kind: journal.CauseChildChange, Verb: verb, Object: secret, Times: times}
	}
	for _, tt := range []struct {
		name   string
		merged []journal.Cause
		want   []journal.Cause
	}{
		{"none", nil, nil},
		{"one", []journal.Cause{child("updated", 1)}, []journal.Cause{child("updated", 1)}},
		{"one without a count", []journal.Cause{child("updated", 0)}, []journal.Cause{child("updated", 1)}},
		{"the same", []journal.Cause{child("updated", 1), child("updated", 0), child("updated", 5)}, []journal.Cause{child("updated", 7)}},
		{"another verb", []journal.Cause{child("updated", 1), child("deleted", 1)}, []journal.Cause{child("updated", 1), child("deleted", 1)}},
		{
			"another kind of cause", []journal.Cause{child("updated", 1), {Kind: journal.CauseForeignChange, Verb: "updated", Object: secret, Times: 1}},
			[]journal.Cause{child("updated", 1), {Kind: journal.CauseForeignChange, Verb: "updated", Object: secret, Times: 1}},
		},
		{
			"another object", []journal.Cause{{Kind: journal.CauseTimer}, child("updated", 1), {Kind: journal.CauseTimer}},
			[]journal.Cause{{Kind: journal.CauseTimer, Times: 2}, child("updated", 1)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []journal.Cause
			for _, c := range tt.merged {
				got = journal.MergeCauses(got, c)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

// What is too much to be kept apart is counted without its name.
func TestMergeManyCauses(t *testing.T) {
	var causes []journal.Cause
	for i := range 100 {
		kind, verb := "Pod", "updated"
		if i%4 == 3 {
			kind, verb = "Secret", "created"
		}
		object := journal.Object{Kind: kind, Name: fmt.Sprint(i)}
		causes = journal.MergeCauses(causes, journal.Cause{Kind: journal.CauseForeignChange, Verb: verb, Object: object})
	}
	causes = journal.MergeCauses(causes, journal.Cause{Kind: journal.CauseTimer})
	causes = journal.MergeCauses(causes, journal.Cause{Kind: journal.CauseForeignChange, Verb: "updated", Object: journal.Object{Kind: "Pod", Name: "0"}})
	var got []string
	for _, c := range causes {
		got = append(got, c.String())
	}
	want := []string{
		"Pod 0 updated 2 times", "Pod 1 updated", "Pod 2 updated", "Secret 3 created", "Pod 4 updated", "Pod 5 updated", "Pod 6 updated", "Secret 7 created",
		"Pod 8 updated", "Pod 9 updated", "Pod 10 updated", "Secret 11 created", "Pod 66 times", "Secret 22 times", "timer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// Merging loses no count, of no kind, keeps nothing twice, and stays small.
func TestMergingLosesNothing(t *testing.T) {
	kinds := []journal.CauseKind{journal.CauseOwnChange, journal.CauseChildChange, journal.CauseForeignChange, journal.CauseTimer}
	cause := rapid.Custom(func(t *rapid.T) journal.Cause {
		return journal.Cause{
			Kind:   rapid.SampledFrom(kinds).Draw(t, "kind"),
			Verb:   rapid.SampledFrom([]string{"", "created", "updated"}).Draw(t, "verb"),
			Object: journal.Object{Kind: rapid.SampledFrom([]string{"", "Pod", "Secret"}).Draw(t, "object"), Name: rapid.StringMatching("[a-e]?").Draw(t, "name")},
			Times:  rapid.IntRange(0, 3).Draw(t, "times"),
		}
	})
	type kind struct {
		cause  journal.CauseKind
		object string
	}
	count := func(causes []journal.Cause) map[kind]int {
		counts := make(map[kind]int)
		for _, c := range causes {
			counts[kind{c.Kind, c.Object.Kind}] += max(c.Times, 1)
		}
		return counts
	}
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SliceOfNDistinct(cause, 0, 3, func(c journal.Cause) journal.Cause { c.Times = 0; return c }).Draw(t, "first")
		more := rapid.SliceOfN(cause, 0, 60).Draw(t, "more")
		want := count(append(slices.Clone(first), more...))
		got := slices.Clone(first)
		for _, c := range more {
			got = journal.MergeCauses(got, c)
		}
		if diff := cmp.Diff(want, count(got)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		seen := make(map[journal.Cause]bool)
		for _, c := range got {
			c.Times = 0
			if seen[c] {
				t.Errorf("%v is there twice", c)
			}
			seen[c] = true
		}
		if most := 12 + len(kinds)*3; len(got) > most {
			t.Errorf("there are %d causes, want at most %d", len(got), most)
		}
	})
}
