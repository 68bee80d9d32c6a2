// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var goFiles, pageFiles = sync.OnceValues(func() (map[string]string, error) { return readBelow(".go") }),
	sync.OnceValues(func() (map[string]string, error) { return readBelow(".md") })

// filesBelow returns the files of the repository with this ending, by their paths.
func filesBelow(t *testing.T, ending string) map[string]string {
	t.Helper()
	read := func() (map[string]string, error) { return readBelow(ending) }
	switch ending {
	case ".go":
		read = goFiles
	case ".md":
		read = pageFiles
	}
	files, err := read()
	must(t, err)
	return files
}

func readBelow(ending string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err == nil && entry.IsDir() && path == "bin": // what the suite builds
			return filepath.SkipDir
		case err != nil || entry.IsDir() || !strings.HasSuffix(path, ending):
			return err
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(path)] = string(text)
		return err
	})
	return files, err
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)
	heading = regexp.MustCompile("(?m)^#+ (.*)$")

	notInAnchors = regexp.MustCompile(`[^\pL\pN _-]`)
	anchorsOf    sync.Map // the text of a page to what anchors returns
)

// anchors returns what the headings of a page can be linked by. It remembers them: the longest pages
// are those that most links lead to.
func anchors(page string) map[string]bool {
	if found, ok := anchorsOf.Load(page); ok {
		return found.(map[string]bool) //nolint:errcheck // nothing else is stored
	}
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := notInAnchors.ReplaceAllString(strings.ToLower(h[1]), "")
		found[strings.ReplaceAll(strings.TrimSpace(name), " ", "-")] = true
	}
	anchorsOf.Store(page, found)
	return found
}

// Every link from one page to another file leads somewhere, and every anchor to a heading. The
// changelog may link to pages by the addresses that they had.
func TestLinksOfTheDocumentation(t *testing.T) {
	inRoot(t)
	links, pages := 0, filesBelow(t, ".md")
	for page, text := range pages {
		for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			links++
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s has a link to nowhere: %s", page, match[1])
				continue
			}
			wanted, isPage := pages[target]
			if isPage && match[2] != "" && !anchors(wanted)[match[2]] {
				t.Errorf("%s has a link to %s, which has no heading #%s", page, target, match[2])
			}
		}
	}
	if links < 200 {
		t.Errorf("found %d links: is the expression right?", links)
	}
}

// Messages, comments and tests in Go name pages that are there, by headings that they have.
func TestPagesNamedInGo(t *testing.T) {
	inRoot(t)
	named, pages := 0, filesBelow(t, ".md")
	for path, text := range filesBelow(t, ".go") {
		for _, match := range regexp.MustCompile(`\b(docs/[a-z0-9/-]+\.md)(?:#([a-z0-9-]+))?`).FindAllStringSubmatch(text, -1) {
			named++
			page, ok := pages[match[1]]
			switch {
			case !ok:
				t.Errorf("%s names a page that is not there: %s", path, match[1])
			case match[2] != "" && !anchors(page)[match[2]]:
				t.Errorf("%s names a heading that is not there: %s", path, match[0])
			}
		}
	}
	if named < 20 {
		t.Errorf("found %d names: is the expression right?", named)
	}
}

// Each package that a command of a page tests, runs or builds is there: in this repository, or in
// what ctrlkit init writes.
func TestPackagesNamedInPages(t *testing.T) {
	inRoot(t)
	named := 0
	for path, text := range filesBelow(t, ".md") {
		for _, match := range regexp.MustCompile("go (?:test|run|build)[^`\n]* \\./([a-z0-9_/-]+)").FindAllStringSubmatch(text, -1) {
			named++
			if slices.Contains([]string{"cmd", "internal/controller"}, match[1]) {
				continue // of a project that init has written
			}
			if !slices.ContainsFunc([]string{".", "bench", "examples"}, func(module string) bool {
				info, err := os.Stat(filepath.Join(module, match[1]))
				return err == nil && info.IsDir()
			}) {
				t.Errorf("%s names a package that is not there: %s", path, match[0])
			}
		}
	}
	if named < 20 {
		t.Errorf("found %d packages: is the expression right?", named)
	}
}

// There are few pages, and the table of contents has each.
func TestPages(t *testing.T) {
	inRoot(t)
	pages, contents := map[string]string{}, map[string]bool{"README.md": true}
	for path, text := range filesBelow(t, ".md") {
		if filepath.Dir(path) == "docs" {
			pages[filepath.Base(path)] = text
		}
	}
	for _, match := range link.FindAllStringSubmatch(pages["README.md"], -1) {
		contents[match[1]] = true
	}
	list := 0
	for name := range pages {
		if list++; !contents[name] {
			t.Errorf("docs/README.md has no link to docs/%s", name)
		}
	}
	if list > 27 {
		t.Errorf("there are %d pages: find one of the 27 that the new text belongs to", list)
	}
}

// docs/reference.md names each annotation, condition, reason, series and exit code.
func TestReferenceIsComplete(t *testing.T) {
	inRoot(t)
	page, err := os.ReadFile("docs/reference.md")
	must(t, err)
	notOurs := regexp.MustCompile(`_test\.go$|^(examples|bench)/|testdata/|golden/|^sim/internal/|^internal/sim/|ctrlkittest/`)
	for what, tt := range map[string]struct {
		expression, format string
		least              int
	}{
		"annotation": {`"((?:[a-z]+\.)*ctrlkit\.dev/[a-z-]*)"`, "`%s", 15},
		"policy":     {`Annotation += [Dd]omain \+ "(/[a-z-]+)"`, "`policy.ctrlkit.dev%s`", 4},
		"condition":  {`\b[Cc]ondition[A-Z]\w+ += "([A-Z]\w+)"`, "`%s`", 7},
		"reason":     {`\b[Rr]eason[A-Z]\w+ += "([A-Z]\w+)"`, "`%s`", 40},
		"series":     {`"(ctrlkit_[a-z_]+)"`, "`%s`", 11},
		"exit code":  {`\bexit[A-Z]\w+ += ([0-9]+)`, "\n| %s | ", 4},
	} {
		found := 0
		for path, text := range filesBelow(t, ".go") {
			if notOurs.MatchString(path) {
				continue
			}
			for _, match := range regexp.MustCompile(tt.expression).FindAllStringSubmatch(text, -1) {
				found++
				if !strings.Contains(string(page), fmt.Sprintf(tt.format, match[1])) {
					t.Errorf("docs/reference.md does not name the %s %s of %s", what, match[1], path)
				}
			}
		}
		if found < tt.least {
			t.Errorf("found %d of %q: is the expression right?", found, what)
		}
	}
}

// Every message and reason that docs/troubleshooting.md explains, and every reason in the table of
// docs/reference.md, is one that a program prints.
func TestTroubleshooting(t *testing.T) {
	inRoot(t)
	var code strings.Builder
	for path, text := range filesBelow(t, ".go") {
		if !strings.HasSuffix(path, "_test.go") {
			code.WriteString(text)
		}
	}
	pages := filesBelow(t, ".md")
	_, reasons, _ := strings.Cut(pages["docs/reference.md"], "\n| reasons | of |")
	reasons, _, _ = strings.Cut(reasons, "\n\n")
	for page, text := range map[string]string{"docs/troubleshooting.md": pages["docs/troubleshooting.md"], "docs/reference.md": reasons} {
		explained := 0
		for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(text, -1) {
			for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
				explained++
				printed := match[1]
				if !strings.Contains(printed, " ") { // a reason
					printed = `"` + printed + `"`
				}
				if !strings.Contains(code.String(), printed) {
					t.Errorf("%s explains what nothing prints: %s", page, match[1])
				}
			}
		}
		if explained < 30 {
			t.Errorf("found %d messages in %s: is the expression right?", explained, page)
		}
	}
}

// A sentence names its subject. Questions may begin with "What", and headings.
func TestSubjects(t *testing.T) {
	inRoot(t)
	subject := regexp.MustCompile(`(?m)(?:^|[.:;|] |^[-*] )What (?:[^|.?\n]|\n[^\n])*[.?:]`)
	pages := 0
	for page, text := range filesBelow(t, ".md") {
		if strings.Contains(page, "testdata/") {
			continue
		}
		pages++
		for _, match := range subject.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
			if !strings.HasSuffix(match, "?") && !strings.Contains(match, "What to do") {
				t.Errorf("%s: name the subject of %q", page, match)
			}
		}
	}
	if pages < 20 {
		t.Errorf("read %d pages", pages)
	}
}

// Every test that a page names exists.
func TestTestsNamedInTheDocumentation(t *testing.T) {
	inRoot(t)
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

// The Go of the guides stands in the examples: those of the module, or the Examples of the
// packages. That of the README stands in a test.
func TestGuides(t *testing.T) {
	inRoot(t)
	var examples strings.Builder
	for path, text := range filesBelow(t, ".go") {
		if strings.HasPrefix(path, "examples/") || strings.HasPrefix(filepath.Base(path), "example_") || path == "readme_test.go" {
			examples.WriteString(text)
		}
	}
	for page, least := range map[string]int{
		"README.md": 2, "docs/steps.md": 4, "docs/moving.md": 10, "docs/children.md": 2, "docs/external.md": 3, "docs/external-options.md": 3, "docs/lifecycles.md": 4, "docs/ship.md": 3, "docs/check.md": 1,
	} {
		for _, block := range blocksOf(t, page, "go", least) {
			if !strings.Contains(examples.String(), block[1]) {
				t.Errorf("%s has Go that is in no example:\n%s", page, block[1])
			}
		}
	}
}

// What the README and a guide show of the output of programs stands in the file that they name,
// where another test compares it with what the program prints. An empty line stands for what is
// left out.
func TestOutputInTheDocumentation(t *testing.T) {
	inRoot(t)
	for page, least := range map[string]int{"README.md": 2, "docs/operate.md": 11} {
		for _, block := range blocksOf(t, page, "\\w+ from=(\\S+)", least) {
			source, err := os.ReadFile(block[1])
			must(t, err)
			rest := string(source)
			for _, section := range strings.Split(block[2], "\n\n") {
				_, after, found := strings.Cut(rest, section)
				if !found {
					t.Errorf("%s shows what is not in %s, or not there:\n%s", page, block[1], section)
					break
				}
				rest = after
			}
		}
	}
}

// blocksOf returns the blocks of a page that begin in this way, of which there are some.
func blocksOf(t *testing.T, page, begin string, least int) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	about, _, _ := strings.Cut(string(text), "\n## Mistakes in the code\n") // that is about package vet
	blocks := regexp.MustCompile("(?s)```"+begin+"\n(.*?\n)```").FindAllStringSubmatch(about, -1)
	if len(blocks) < least {
		t.Errorf("found %d blocks in %s: is the expression right?", len(blocks), page)
	}
	return blocks
}

// Each file of Go that a person has written begins with the license. What is generated, and what
// stands for files of users, has none.
func TestLicenseHeaders(t *testing.T) {
	inRoot(t)
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
