// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

// TestGolden compares what is generated from the documents of the golden packages with the files
// beside them, which are compiled, and run as tests of these packages.
func TestGolden(t *testing.T) {
	rings.Test(t, "runs the go command")
	loader := check.NewCache(check.GoLoader{})
	for _, dir := range []string{"golden", "golden/defined", "golden/foreign", "golden/seed/manager"} {
		t.Run(dir, func(t *testing.T) {
			in, err := check.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			in.Dir = "."
			pkg, list, err := check.Check(t.Context(), in, loader)
			if err != nil || list.HasErrors() {
				t.Fatalf("%v, %v", err, list)
			}
			for _, file := range generated(t, pkg) {
				compareGolden(t, filepath.Join(dir, file.Name), file.Content)
			}
		})
	}
}

// TestGoldenTexts has a manager without states and actions, and the names that are chosen for the
// states of one that has nasty names, with what they select, and the rules for single objects.
func TestGoldenTexts(t *testing.T) {
	compareGolden(t, "testdata/empty.golden", generated(t, emptyModel())[0].Content)

	var rules bytes.Buffer
	pkg := singleModel()
	for _, manager := range pkg.Documents[0].Managers {
		view := newManagerView(manager, newImports(pkg, pkg.Documents[0]), newPackageNames(pkg))
		fmt.Fprintf(&rules, "%s %s\n%s\n", view.Name, view.Cache, strings.Join(view.Rules, "\n"))
		for _, only := range view.Only {
			fmt.Fprintln(&rules, only.Call())
		}
	}
	compareGolden(t, "testdata/single.golden", rules.Bytes())

	var names bytes.Buffer
	pkg = nastyModel()
	view := newManagerView(pkg.Documents[0].Managers[0], newImports(pkg, pkg.Documents[0]), newPackageNames(pkg))
	fmt.Fprintf(&names, "%+v %+v %s %s\n", view.Names, view.Fields, view.NewAction, view.FakeTarget)
	for _, action := range view.Actions {
		fmt.Fprintf(&names, "action %s: %s\n", action.Name, action.Const)
	}
	for _, st := range view.States {
		fmt.Fprintf(&names, "state %s: %s\n", st.Name, strings.Join([]string{
			st.Getter, st.Reader, st.Field, st.Local, st.FakeValue, st.FakeError, st.Select, st.Type, strings.Join(strings.Fields(st.Wanted), " "),
		}, " "))
	}
	compareGolden(t, "testdata/nasty.golden", names.Bytes())
}

func generated(t *testing.T, pkg *model.Package) []File {
	t.Helper()
	files, err := Generate(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	t.Errorf("%s is not what is generated now (-golden +generated), rewrite it with -update:\n%s", path, cmp.Diff(string(want), string(got)))
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
