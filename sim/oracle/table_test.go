// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// names returns the oracles that the source of the package declares.
func names(t *testing.T) []Name {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "oracle.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var list []Name
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value); err == nil {
				list = append(list, Name(name))
			}
		}
		return true
	})
	return list
}

// Each oracle has one row in the table, with a class and a meaning.
func TestEachOracleHasARow(t *testing.T) {
	all := names(t)
	if len(all) < 18 {
		t.Fatalf("the source declares %d oracles", len(all))
	}
	for _, name := range all {
		entry, ok := About(name)
		switch {
		case !ok:
			t.Errorf("%s has no row in table: say how bad it is, what it means and what to do", name)
		case entry.Class < ClassLost || entry.Class > ClassCosmetic:
			t.Errorf("%s has no class", name)
		case !strings.HasSuffix(entry.Meaning, "."):
			t.Errorf("%s: the meaning %q is not a sentence", name, entry.Meaning)
		case entry.Remedy != "" && !strings.HasSuffix(entry.Remedy, "."), entry.StaleRemedy != "" && !strings.HasSuffix(entry.StaleRemedy, "."):
			t.Errorf("%s: a remedy is not a sentence", name)
		}
	}
	if len(all) != len(table) {
		t.Errorf("%d oracles, %d rows", len(all), len(table))
	}
	byClass := func(a, b Entry) int { return int(a.Class) - int(b.Class) }
	if !slices.IsSortedFunc(table, byClass) {
		t.Error("the table does not begin with the worst class")
	}
	if entry, ok := About("unheard-of"); ok || entry.Class != ClassDifference || Name("unheard-of").Rank() != len(table) {
		t.Errorf("an oracle without a row has %+v", entry)
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
