// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/catalog"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// The checker finds in a catalog what it finds in the Go packages: the same kinds, with the same
// fields, which are text or not, and the same values.
func TestCatalogIsThePackages(t *testing.T) {
	rings.Test(t, "runs the go command")
	paths := slices.Compact(slices.Sorted(maps.Values(check.BuiltinPackages())))
	packages := check.NewCache(check.GoLoader{})
	text, err := catalog.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bare := catalog.New(text).With(nil)
	var document strings.Builder
	for _, kind := range kindsOf(t, packages, "") {
		fmt.Fprintf(&document, "alias A%d %s\n", strings.Count(document.String(), "\n"), kind)
	}
	want, got := describe(t, packages, document.String()), describe(t, bare, document.String())
	if len(want) < 10_000 {
		t.Errorf("only %d fields of %d packages", len(want), len(paths))
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("the packages have\n%s\nand the catalog has\n%s", want[i], got[i])
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d fields in the packages, %d in the catalog", len(want), len(got))
	}
}

func analyze(t *testing.T, loader check.Loader, document string) *check.Analysis {
	t.Helper()
	in := check.Input{Name: "manager", Sources: []check.Source{{File: "a.ctrlkit", Text: []byte(document)}}}
	a, err := check.Analyze(context.Background(), in, loader)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// kindsOf returns the kinds of Kubernetes, each in full.
func kindsOf(t *testing.T, loader check.Loader, document string) []string {
	labels := map[string]string{}
	for label, path := range check.BuiltinPackages() {
		if len(label) > len(labels[path]) {
			labels[path] = label
		}
	}
	for path, label := range labels {
		document += fmt.Sprintf("bind %s %s\n", label, path)
	}
	var kinds []string
	for _, name := range analyze(t, loader, document).KindNames("a.ctrlkit") {
		if strings.Contains(name.Name, "/") {
			kinds = append(kinds, name.Name)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// describe returns a line for each field of the kinds of a document.
func describe(t *testing.T, loader check.Loader, document string) []string {
	a := analyze(t, loader, document)
	lines := []string{fmt.Sprint(a.List)}
	for line := range strings.Lines(document) {
		words := strings.Fields(line)
		kind, ok := a.Kind("a.ctrlkit", words[1])
		lines = append(lines, fmt.Sprintf("%s %v %+v", words[2], ok, kind.Kind))
		if ok {
			lines = append(lines, walk(words[2], kind.Root(), 4)...)
		}
	}
	return lines
}

func walk(way string, f check.Field, depth int) []string {
	lines := []string{fmt.Sprintf("%s %s text=%v list=%v %q", way, f.Type, f.Text, f.List, f.Values)}
	if depth == 0 {
		return lines
	}
	for _, below := range f.JSONFields() {
		lines = append(lines, walk(way+"."+below.Name, below, depth-1)...)
	}
	for _, below := range f.Fields() {
		lines = append(lines, fmt.Sprintf("%s/%s %s text=%v list=%v", way, below.Name, below.Type, below.Text, below.List))
	}
	return lines
}
