// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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

var (
	moduleDir string
	// realLoader loads every Go package once for all tests.
	realLoader = check.NewCache(check.GoLoader{})
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ctrlkit-check")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := checktest.WriteModule(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		moduleDir = dir
		return m.Run()
	}())
}

// loadUsual loads in one go what most of the documents need. What fails fails again where it is
// needed.
var loadUsual = sync.OnceFunc(func() {
	_, _ = realLoader.Load(context.Background(), moduleDir, []string{
		"controller-kit-demo/api/...", "k8s.io/api/apps/v1", "k8s.io/api/autoscaling/v2", "k8s.io/api/batch/v1", "k8s.io/api/core/v1",
		"k8s.io/api/events/v1", "k8s.io/api/networking/v1", "k8s.io/api/rbac/v1", "k8s.io/api/storage/v1beta1",
		"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
	})
})

// checkReal checks documents with the packages that the go command loads.
func checkReal(t *testing.T, in check.Input) (*model.Package, diag.List) {
	t.Helper()
	rings.Test(t, "runs the go command")
	loadUsual()
	pkg, list, err := check.Check(t.Context(), in, realLoader)
	if err != nil {
		t.Fatal(err)
	}
	return pkg, list
}

// needHints reports diagnostics that do not say what to do.
func needHints(t *testing.T, list diag.List) {
	t.Helper()
	for _, d := range list {
		if d.Hint == "" {
			t.Errorf("no hint: %v", d)
		}
	}
}

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// sources returns the files of an archive that are documents. A line that begins with "quoted "
// stands for a whole document as a Go string, for texts that an archive cannot hold.
func sources(t *testing.T, archive *txtar.Archive) check.Input {
	t.Helper()
	in := check.Input{Dir: moduleDir, Name: "manager", Path: "controller-kit-demo/manager"}
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, check.Extension) {
			in.Sources = append(in.Sources, check.Source{File: f.Name, Text: []byte(diag.Unquoted(string(f.Data)))})
		}
	}
	return in
}

// rendered is what the command prints for the list.
func rendered(t *testing.T, in check.Input, list diag.List) string {
	t.Helper()
	printer := diag.Printer{Sources: map[string][]byte{}}
	for _, s := range in.Sources {
		printer.Sources[s.File] = s.Text
	}
	var out bytes.Buffer
	if err := printer.Print(&out, list); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// compareGolden compares the file "want" of an archive.
func compareGolden(t *testing.T, name string, archive *txtar.Archive, got string) {
	t.Helper()
	want := ""
	at := -1
	for i, f := range archive.Files {
		if f.Name == "want" {
			want, at = string(f.Data), i
		}
	}
	if got == want {
		return
	}
	t.Error(cmp.Diff(want, got))
	if !updating() {
		return
	}
	if at < 0 {
		archive.Files = append(archive.Files, txtar.File{Name: "want"})
		at = len(archive.Files) - 1
	}
	archive.Files[at].Data = []byte(got)
	if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestWrongDocuments checks every archive of testdata/wrong: what is said about the documents in it
// is in its file want.
func TestWrongDocuments(t *testing.T) {
	eachArchive(t, "testdata/wrong/*.txtar", 50, func(t *testing.T, name string, archive *txtar.Archive) {
		in := sources(t, archive)
		pkg, list := checkReal(t, in)
		if len(list) == 0 {
			t.Error("nothing is wrong with it")
		}
		needHints(t, list)
		if (pkg == nil) != list.HasErrors() {
			t.Errorf("package is nil: %v, errors: %v", pkg == nil, list.HasErrors())
		}
		compareGolden(t, name, archive, rendered(t, in, list))
	})
}

// TestRightDocuments checks every archive of testdata/right: the model of the documents in it is in
// its file want.
func TestRightDocuments(t *testing.T) {
	eachArchive(t, "testdata/right/*.txtar", 5, func(t *testing.T, name string, archive *txtar.Archive) {
		in := sources(t, archive)
		pkg, list := checkReal(t, in)
		if len(list.Problems()) > 0 {
			t.Fatalf("mistakes in a right document:\n%s", rendered(t, in, list))
		}
		compareGolden(t, name, archive, dump(pkg)+rendered(t, in, list))
	})
}

func eachArchive(t *testing.T, pattern string, atLeast int, test func(*testing.T, string, *txtar.Archive)) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < atLeast {
		t.Fatalf("%d archives in %s, want at least %d", len(names), pattern, atLeast)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			test(t, name, archive)
		})
	}
}

// TestExamples checks that the example of every code has just that mistake.
func TestExamples(t *testing.T) {
	for _, e := range diag.Codes() {
		t.Run(string(e.Code), func(t *testing.T) {
			in := check.Input{Dir: moduleDir, Sources: []check.Source{{File: "example.ctrlkit", Text: []byte(e.Example)}}}
			_, list := checkReal(t, in)
			needHints(t, list)
			if len(list) != 1 || list[0].Code != e.Code {
				t.Errorf("want one mistake with code %s, got:\n%s", e.Code, rendered(t, in, list))
			}
		})
	}
}

// TestExampleDocument checks the document of the language's example as it stands.
func TestExampleDocument(t *testing.T) {
	in := check.Input{Dir: moduleDir, Name: "manager", Sources: []check.Source{{File: "cronjob.ctrlkit", Text: checktest.CronJob}}}
	pkg, list := checkReal(t, in)
	if len(list) > 0 {
		t.Errorf("mistakes in the example:\n%s", rendered(t, in, list))
	}
	golden, err := os.ReadFile("testdata/cronjob.model")
	if got := dump(pkg); err != nil || got != string(golden) {
		t.Error(cmp.Diff(string(golden), got))
		if updating() {
			if err := os.WriteFile("testdata/cronjob.model", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
