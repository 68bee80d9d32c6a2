// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"strings"
	"testing"
)

// Each row of the table has a class and a meaning, and the worst classes come first.
func TestTable(t *testing.T) {
	for i, e := range table {
		switch {
		case e.Name.Rank() != i:
			t.Errorf("%s has two rows", e.Name)
		case e.Class < ClassLost || e.Class > ClassCosmetic:
			t.Errorf("%s has no class", e.Name)
		case !strings.HasSuffix(e.Meaning, "."):
			t.Errorf("%s: the meaning %q is not a sentence", e.Name, e.Meaning)
		case e.Remedy != "" && !strings.HasSuffix(e.Remedy, "."), e.StaleRemedy != "" && !strings.HasSuffix(e.StaleRemedy, "."):
			t.Errorf("%s: a remedy is not a sentence", e.Name)
		}
	}
	byClass := func(a, b Entry) int { return int(a.Class) - int(b.Class) }
	if !slices.IsSortedFunc(table, byClass) {
		t.Error("the table does not begin with the worst class")
	}
	if entry, ok := About("unheard-of"); ok || entry.Class != ClassDifference || Name("unheard-of").Rank() != len(table) {
		t.Errorf("an oracle without a row has %+v", entry)
	}
	if err := new(Class).UnmarshalText([]byte("bad")); err == nil {
		t.Error("there is a class of any name")
	}
}

// What a stale cache has caused has a remedy in ctrlkit, and one without it.
func TestRemediesOfStaleCaches(t *testing.T) {
	for _, name := range []Name{NoLeak, OneExternal, FinalizerFirst, SameWork} {
		entry, _ := About(name)
		for _, want := range []string{"EnsureFresh", "GetAPIReader", "idempotency token"} {
			if !strings.Contains(entry.StaleRemedy, want) {
				t.Errorf("%s: %q does not name %s", name, entry.StaleRemedy, want)
			}
		}
	}
}

// The class of a violation is that of its worst difference.
func TestClassOfDifferences(t *testing.T) {
	status := Difference{Thing: "widgets default/x", Path: ".status.ready", Want: "true"}
	tests := []struct {
		differences []Difference
		want        Class
	}{
		{nil, ClassDifference},
		{[]Difference{status}, ClassStatus},
		{[]Difference{status, {Thing: "secrets default/x", Path: ".data.a", Want: "1", Got: "2"}}, ClassDifference},
		{[]Difference{status, {Thing: "secrets default/x", Want: "there"}}, ClassStuck},
		{[]Difference{status, {Thing: "secrets default/x", Got: "there"}}, ClassDuplicate},
		{[]Difference{status, {Thing: "external buckets b-1", Got: "there"}}, ClassLost},
		{[]Difference{{Thing: "external buckets b-1", Path: "spec.size", Want: "1", Got: "2"}}, ClassDifference},
	}
	for _, tt := range tests {
		if got := (Violation{Oracle: SameEnd, Differences: tt.differences}).Class(); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.differences, got, tt.want)
		}
	}
	if got := (Violation{Oracle: NoLeak}).Class(); got != ClassLost {
		t.Errorf("a leak is %s", got)
	}
	if got := Class(0).String() + ", " + ClassCosmetic.String(); got != "unknown, cosmetic" {
		t.Errorf("got %s", got)
	}
}

// What is missing is worse than what is too much, and Pods are behind the object that has none.
func TestWorst(t *testing.T) {
	pod := Difference{Thing: "pods default/db-0", Got: "there"}
	gone := Difference{Thing: "pods default/db-1", Want: "there"}
	service := Difference{Thing: "services default/db", Want: "there"}
	second := Difference{Thing: "secrets default/db-2", Got: "there"}
	field := Difference{Thing: "databases.example.com default/db", Path: ".status.phase", Want: "Ready"}
	left := Difference{Thing: "external cloud db", Got: "there"}
	for _, tt := range []struct {
		all  []Difference
		want Difference
	}{
		{[]Difference{pod, field, gone, second, service}, service},
		{[]Difference{field, pod, second}, second},
		{[]Difference{field, pod}, pod},
		{[]Difference{field}, field},
		{[]Difference{second, left}, left},
	} {
		if got := (Violation{Differences: tt.all}).Worst(); got != tt.want {
			t.Errorf("of %v the worst is %s, want %s", tt.all, got, tt.want)
		}
	}
}
