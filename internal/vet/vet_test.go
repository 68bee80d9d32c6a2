// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/internal/vet"
)

// every runs all analyzers. So the packages of each, which use the real libraries, are loaded once,
// and what is right for one of them is right for all.
func every() *analysis.Analyzer {
	a := &analysis.Analyzer{Name: "every", Doc: "run all analyzers"}
	for _, one := range vet.Analyzers() {
		for _, required := range one.Requires {
			if !slices.Contains(a.Requires, required) {
				a.Requires = append(a.Requires, required)
			}
		}
	}
	a.Run = func(pass *analysis.Pass) (any, error) {
		for _, one := range vet.Analyzers() {
			part := *pass
			part.Analyzer = one
			if _, err := one.Run(&part); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return a
}

// The packages of testdata say in comments what is reported where.
func TestAnalyzers(t *testing.T) {
	rings.Test(t, "type-checks all that the packages import")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	err = filepath.WalkDir("testdata/src", func(path string, entry os.DirEntry, err error) error {
		if dir := "./internal/vet/" + filepath.ToSlash(filepath.Dir(path)); err == nil && filepath.Ext(path) == ".go" && !slices.Contains(packages, dir) {
			packages = append(packages, dir)
		}
		return err
	})
	if err != nil || len(packages) < 10 {
		t.Fatalf("found the packages %q, %v", packages, err)
	}
	analysistest.RunWithSuggestedFixes(t, root, every(), packages...)
}

// Each analyzer is explained, with what is wrong and what is right, and has a section of the guide.
func TestAnalyzersAreExplained(t *testing.T) {
	guide, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := analysis.Validate(vet.Analyzers()); err != nil {
		t.Error(err)
	}
	var names []string
	for _, a := range vet.Analyzers() {
		names = append(names, a.Name)
		section := regexp.MustCompile(`(?ms)^## ` + a.Name + `\n(.*?)(^## |\z)`).FindStringSubmatch(string(guide))
		if section == nil || strings.Count(section[1], "```go\n") < 2 || !strings.Contains(section[1], "Wrong:") || !strings.Contains(section[1], "Right:") {
			t.Errorf("docs/check.md has no section for %s with code that is wrong and code that is right", a.Name)
		}
		if !strings.HasSuffix(a.URL, "docs/check.md#"+a.Name) {
			t.Errorf("%s is explained at %s", a.Name, a.URL)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the analyzers are not sorted: %q", names)
	}
}

// The Go of the guide is that of testdata, without the comments that say what is reported.
func TestGuideToVet(t *testing.T) {
	wants := regexp.MustCompile(` +// want .*|/\* want [^*]*\*/ `)
	var code strings.Builder
	err := filepath.WalkDir("testdata/src", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(wants.ReplaceAll(text, nil))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	_, mistakes, _ := strings.Cut(string(guide), "\n## Mistakes in the code\n")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(mistakes, -1)
	if len(blocks) < 2*len(vet.Analyzers()) {
		t.Errorf("found %d blocks of Go: is the expression right?", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(code.String(), block[1]) {
			t.Errorf("docs/check.md has Go that is not in testdata:\n%s", block[1])
		}
	}
}
