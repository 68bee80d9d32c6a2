// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// FuzzCheck checks arbitrary texts against the packages of checktest.Loader: there is no panic, a
// model exactly when there is no error, and nothing in the model that the generator cannot use.
func FuzzCheck(f *testing.F) {
	documents, err := checktest.Documents()
	if err != nil {
		f.Fatal(err)
	}
	for _, src := range documents {
		f.Add([]byte(src))
	}
	for _, text := range hostile() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		in := check.Input{Name: "manager", Sources: []check.Source{{File: "a.ctrlkit", Text: src}}}
		pkg, list, err := check.Check(context.Background(), in, checktest.Loader{})
		if err != nil {
			t.Fatal(err)
		}
		if (pkg == nil) != list.HasErrors() {
			t.Fatalf("package %v with %v", pkg, list)
		}
		for _, d := range list {
			if d.End.Offset < d.Start.Offset || d.End.Offset > len(src) || d.Message == "" {
				t.Errorf("%v spans %d to %d of %d", d, d.Start.Offset, d.End.Offset, len(src))
			}
		}
		if pkg != nil {
			checkModel(t, pkg)
		}
	})
}

// hostile are texts with a huge number of mistakes or huge words.
func hostile() [][]byte {
	const around = "decl A for Deployment {\n    state {\n        pods []Pod { owned }\n    }\n    action {\n        A%s\n    }\n}\n"
	inAction := func(text string) []byte { return fmt.Appendf(nil, around, text) }
	return [][]byte{
		inAction(strings.Repeat("(", 20_000)),
		inAction("(" + strings.Repeat("pods,", 20_000) + ")"),
		inAction("(" + strings.Repeat("x", 1<<20) + ")"),
		[]byte(strings.Repeat("decl A for B {", 20_000)),
		[]byte(strings.Repeat("bind\n", 20_000)),
		[]byte("alias " + strings.Repeat("日本", 1<<18) + " batch/v1/Job\n"),
		[]byte(strings.Repeat("}\r", 20_000)),
		bytes.Repeat([]byte("d\x00"), 20_000),
	}
}

// TestHostileDocumentsAreAnsweredBriefly checks that the diagnostics for up to a megabyte of
// mistakes are short.
func TestHostileDocumentsAreAnsweredBriefly(t *testing.T) {
	for i, text := range hostile() {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			in := check.Input{Name: "manager", Sources: []check.Source{{File: "a.ctrlkit", Text: text}}}
			_, list, err := check.Check(t.Context(), in, checktest.Loader{})
			if err != nil || len(list) == 0 {
				t.Fatalf("%d mistakes, %v", len(list), err)
			}
			if got := rendered(t, in, list); len(got) > 200_000 {
				t.Errorf("%d bytes about a document of %d", len(got), len(text))
			}
		})
	}
}

// checkModel checks what generated code relies on.
func checkModel(t *testing.T, pkg *model.Package) {
	t.Helper()
	for _, d := range pkg.Documents {
		for _, m := range d.Managers {
			if m.Name == "" || m.Target.Type == "" || m.Target.Package == "" {
				t.Errorf("manager without a name or target: %+v", m)
			}
			for _, s := range m.States {
				if s.Name == "" || s.Kind.Type == "" || s.Namespace.Mode == 0 || s.List && s.Kind.List == "" {
					t.Errorf("state with something missing: %+v", s)
				}
				if (s.Namespace.Mode == model.NamedNamespace) != (s.Namespace.Value != nil) {
					t.Errorf("namespace and its value contradict: %+v", s)
				}
				for _, f := range s.Fields {
					if !f.ControllerField && (len(f.Path) == 0 || f.Text == 0) || len(f.Value.Parts) == 0 {
						t.Errorf("field with something missing: %+v", f)
					}
				}
				for _, l := range s.Labels {
					for _, p := range l.Value.Parts {
						if p.Ref != nil && (len(p.Ref.Path) == 0 || p.Ref.Text == 0) {
							t.Errorf("reference with something missing: %+v", p.Ref)
						}
					}
				}
			}
		}
	}
}

// failingLoader is a loader that does not work.
type failingLoader struct{ err error }

func (l failingLoader) Load(context.Context, string, []string) (map[string]*check.Package, error) {
	return nil, l.err
}

func TestLoaderFails(t *testing.T) {
	want := errors.New("no go command")
	in := check.Input{Sources: []check.Source{{File: "a.ctrlkit", Text: checktest.CronJob}}}
	if _, _, err := check.Check(context.Background(), in, failingLoader{want}); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	in := check.Input{Dir: moduleDir, Sources: []check.Source{{File: "a.ctrlkit", Text: checktest.CronJob}}}
	if _, _, err := check.Check(ctx, in, check.GoLoader{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// untidy is a module whose go.mod requires an older version than another one that it requires does.
const untidy = `
-- go.mod --
module example.com/untidy

go 1.24

require (
	example.com/a v1.0.0
	example.com/b v1.0.0
)

replace (
	example.com/a => ./a
	example.com/b => ./b
)
-- api/api.go --
package api
-- a/go.mod --
module example.com/a

go 1.24

require example.com/b v1.1.0
-- a/a.go --
package a
-- b/go.mod --
module example.com/b

go 1.24
-- b/b.go --
package b
-- x.ctrlkit --
bind a/v1 example.com/unknown/v1
bind b/v1 example.com/other/v1

decl First for a/v1/Thing {
}
-- y.ctrlkit --
bind b/v1 example.com/other/v1
bind c/v1 example.com/untidy/api

decl Second for c/v1/Thing {
    state {
        others []b/v1/Other {
        }
    }
}
`

// A module that the go command does not know hides no package of another one, and is reported with
// what the go command says, once.
func TestUnknownModuleInAnUntidyOne(t *testing.T) {
	rings.Test(t, "runs the go command")
	dir := t.TempDir()
	files, err := txtar.FS(txtar.Parse([]byte(untidy)))
	if err := errors.Join(err, os.CopyFS(dir, files)); err != nil {
		t.Fatal(err)
	}
	in, err := check.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, list, err := check.Check(t.Context(), in, check.GoLoader{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list.Problems() {
		if d.Code.Severity() == diag.Error {
			got = append(got, filepath.Base(d.Start.Filename)+": "+d.Message+": "+d.Hint)
		}
	}
	want := []string{
		"x.ctrlkit: cannot look for Go package example.com/unknown/v1: updates to go.mod needed: run: go mod tidy",
		"y.ctrlkit: example.com/untidy/api has no kind Thing: the package has no kinds: a kind is a struct that embeds metav1.TypeMeta and metav1.ObjectMeta",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// countingLoader counts the calls for each path.
type countingLoader struct{ asked *[]string }

func (l countingLoader) Load(ctx context.Context, dir string, paths []string) (map[string]*check.Package, error) {
	*l.asked = append(*l.asked, paths...)
	return checktest.Loader{}.Load(ctx, dir, paths)
}

func TestCacheAsksOnce(t *testing.T) {
	var asked []string
	cache := check.NewCache(countingLoader{&asked})
	in := check.Input{Sources: []check.Source{{File: "a.ctrlkit", Text: checktest.CronJob}}}
	for range 2 {
		if _, list, err := check.Check(context.Background(), in, cache); err != nil || list.HasErrors() {
			t.Fatal(list, err)
		}
	}
	want := []string{"controller-kit-demo/api/v1", "k8s.io/api/batch/v1", "k8s.io/api/core/v1"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

// TestCacheConcurrently checks from several goroutines with one cache. It needs -race to find
// races.
func TestCacheConcurrently(t *testing.T) {
	cache := check.NewCache(checktest.Loader{})
	in := check.Input{Sources: []check.Source{{File: "a.ctrlkit", Text: checktest.CronJob}}}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, list, err := check.Check(context.Background(), in, cache); err != nil || list.HasErrors() {
				t.Error(list, err)
			}
		})
	}
	group.Wait()
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name       string
		files      map[string]string
		want, path string
	}{
		{"name of the directory", map[string]string{"go.mod": "module example.com/m\n", "my-manager2/a.ctrlkit": ""}, "mymanager2", "example.com/m/my-manager2"},
		{"name of the Go files", map[string]string{"go.mod": "module example.com/m\n", "my-manager2/a.ctrlkit": "", "my-manager2/a.go": "package other\n"}, "other", "example.com/m/my-manager2"},
		{"tests do not count", map[string]string{"go.mod": "module example.com/m\n", "my-manager2/a.ctrlkit": "", "my-manager2/a_test.go": "package other_test\n"}, "mymanager2", "example.com/m/my-manager2"},
		{"no module", map[string]string{"my-manager2/a.ctrlkit": ""}, "mymanager2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				name = filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			in, err := check.Read(filepath.Join(dir, "my-manager2"))
			if err != nil {
				t.Fatal(err)
			}
			if in.Name != test.want || in.Path != test.path || len(in.Sources) != 1 {
				t.Errorf("got %q %q %d, want %q %q 1", in.Name, in.Path, len(in.Sources), test.want, test.path)
			}
		})
	}
	if _, err := check.Read(t.TempDir()); !errors.Is(err, check.ErrNoDocuments) {
		t.Errorf("empty directory: got %v", err)
	}
	if _, err := check.Read("testdata", "testdata/missing.ctrlkit"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v", err)
	}
}

// TestSurroundings checks a good document in directories where its packages cannot be loaded.
func TestSurroundings(t *testing.T) {
	rings.Test(t, "runs the go command")
	doc := []byte("decl Rollout for Deployment {\n    action {\n        Look()\n    }\n}\n")
	for _, test := range []struct {
		name, mod     string
		message, hint string // of the only diagnostic
		err           string
	}{
		{"no module", "", "cannot load Go package k8s.io/api/apps/v1: the document is not in a Go module", "create a module: go mod init", ""},
		{"module without Kubernetes", "module example.com/m\n\ngo 1.26\n",
			"cannot load Go package k8s.io/api/apps/v1: no required module provides package k8s.io/api/apps/v1", "add the module: go get k8s.io/api/apps/v1", ""},
		{"malformed go.mod", "module example.com/m\n\nnonsense\n", "", "",
			"loading Go packages: go: errors parsing go.mod: go.mod:3: unknown directive: nonsense"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if test.mod != "" {
				if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(test.mod), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			in := check.Input{Dir: dir, Sources: []check.Source{{File: "a.ctrlkit", Text: doc}}}
			_, list, err := check.Check(context.Background(), in, check.GoLoader{})
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("got %v, want %s", err, test.err)
				}
				return
			}
			if err != nil || len(list) != 1 || list[0].Message != test.message || list[0].Hint != test.hint {
				t.Errorf("got %v, %v", list, err)
			}
		})
	}
}

// A package whose imports can't be loaded, because go.sum is not complete, is not said to have no
// kinds: go get of a module leaves go.sum so.
func TestIncompleteSums(t *testing.T) {
	rings.Test(t, "runs the go command")
	dir := t.TempDir()
	mod, err := os.ReadFile("../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile("../../../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	var sums strings.Builder
	for line := range strings.Lines(string(all)) {
		if strings.Contains(line, "/go.mod h1:") || strings.HasPrefix(line, "k8s.io/api ") {
			sums.WriteString(line)
		}
	}
	version := regexp.MustCompile(`(?m)^\tk8s.io/api (\S+)`).FindStringSubmatch(string(mod))[1]
	goLine := regexp.MustCompile(`(?m)^go .*$`).FindString(string(mod))
	for name, text := range map[string]string{"go.mod": "module example.com/m\n\n" + goLine + "\n\nrequire k8s.io/api " + version + "\n", "go.sum": sums.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	doc := []byte("decl Rollout for Deployment {\n    action {\n        Look()\n    }\n}\n")
	in := check.Input{Dir: dir, Sources: []check.Source{{File: "a.ctrlkit", Text: doc}}}
	_, list, err := check.Check(t.Context(), in, check.GoLoader{})
	if err != nil || len(list) != 1 || list[0].Code != diag.PackageNotLoaded || list[0].Hint != "run: go get k8s.io/api/apps/v1@"+version ||
		!strings.Contains(list[0].Message, "missing go.sum entry for module providing package k8s.io/apimachinery/") {
		t.Errorf("got %v, %v", list, err)
	}
}
