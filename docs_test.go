// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// filesBelow returns the files of the repository with this ending, by their paths.
func filesBelow(t *testing.T, ending string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Every link from one page to another file leads somewhere.
func TestLinksOfTheDocumentation(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	fenced := regexp.MustCompile("(?s)```.*?```")
	links := 0
	for page, text := range filesBelow(t, ".md") {
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s has a link to nowhere: %s", page, match[1])
			}
		}
	}
	if links < 20 {
		t.Errorf("found %d links: is the expression right?", links)
	}
}

// Every test that a page names exists.
func TestTestsNamedInTheDocumentation(t *testing.T) {
	var tests strings.Builder
	for _, text := range filesBelow(t, "_test.go") {
		tests.WriteString(text)
	}
	named := 0
	for page, text := range filesBelow(t, ".md") {
		for _, name := range regexp.MustCompile("`(Test[A-Z][A-Za-z]+)`").FindAllStringSubmatch(text, -1) {
			named++
			if !strings.Contains(tests.String(), "func "+name[1]+"(t *testing.T)") {
				t.Errorf("%s names a test that is not there: %s", page, name[1])
			}
		}
	}
	if named < 10 {
		t.Errorf("found %d names: is the expression right?", named)
	}
}

// The Go of the guides to steps stands in the examples: those of the module, or the Examples of the
// packages.
func TestGuideToSteps(t *testing.T) {
	var examples strings.Builder
	for path, text := range filesBelow(t, ".go") {
		if strings.HasPrefix(path, "examples/") || strings.HasPrefix(filepath.Base(path), "example_") {
			examples.WriteString(text)
		}
	}
	for page, least := range map[string]int{"docs/steps.md": 4, "docs/moving.md": 10, "docs/children.md": 2, "docs/policy.md": 3, "docs/lifecycle.md": 4, "docs/external.md": 3, "docs/crds.md": 3, "docs/rbac.md": 1} {
		guide, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
		if len(blocks) < least {
			t.Errorf("found %d blocks of Go in %s: is the expression right?", len(blocks), page)
		}
		for _, block := range blocks {
			if !strings.Contains(examples.String(), block[1]) {
				t.Errorf("%s has Go that is in no example:\n%s", page, block[1])
			}
		}
	}
}

// Each file of Go that a person has written begins with the license. What is generated, and what
// stands for files of users, has none.
func TestLicenseHeaders(t *testing.T) {
	const header = "// Copyright The ctrlkit Authors\n// SPDX-License-Identifier: Apache-2.0\n\n"
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	for path, text := range filesBelow(t, ".go") {
		if strings.Contains(path, "testdata/") || strings.Contains(path, "golden/") || generated.MatchString(text) {
			continue
		}
		if !strings.HasPrefix(text, header) {
			t.Errorf("%s does not begin with:\n%s", path, header)
		}
	}
}
