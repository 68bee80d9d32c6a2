// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp_test

import (
	"cmp"
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// seed is a session with the document of the seed, whose packages are loaded.
func seed(t *testing.T) (e *editor, text string) {
	t.Helper()
	here, err := build.ImportDir(".", build.FindOnly)
	must(t, err)
	dir, err := filepath.Abs(filepath.Join(here.Dir, "../gen/golden/seed/manager"))
	must(t, err)
	e = newEditor(t, check.GoLoader{}, object{}, nil)
	e.dir = dir
	content, err := os.ReadFile(e.path("cronjob.ctrlkit"))
	must(t, err)
	text = string(content)
	e.open("cronjob.ctrlkit", strings.Replace(text, "${target.Name}", "${target.Nmae}", 1))
	e.codes("cronjob.ctrlkit", 1, "CK0402")
	e.replace("cronjob.ctrlkit", 2, text)
	e.codes("cronjob.ctrlkit", 2)
	return e, text
}

// While the packages are loaded in which a name is renamed, other requests are answered, and a
// change of the document makes the edits void.
func TestRenameWhilePackagesAreLoaded(t *testing.T) {
	rings.Test(t, "loads Go packages")
	e, text := seed(t)
	for _, changed := range []bool{false, true} {
		params := e.at("cronjob.ctrlkit", endOf(text[:regexp.MustCompile(`RunNextScheduledJob`).FindStringIndex(text)[1]]))
		params["newName"] = "StartNextJob"
		waiter, err := e.conn.DispatchCall(t.Context(), "textDocument/rename", params)
		must(t, err)
		renamed := make(chan error, 1)
		go func() { renamed <- waiter.Wait(t.Context(), &changes{}) }()
		if changed {
			e.replace("cronjob.ctrlkit", 3, text+"\n")
			e.codes("cronjob.ctrlkit", 3)
		}
		e.call("textDocument/hover", e.at("cronjob.ctrlkit", place{}), nil)
		select {
		case err := <-renamed:
			t.Fatalf("the name was renamed before the packages were loaded: %v", err)
		default:
		}
		if err := <-renamed; (err != nil) != changed || changed && !strings.Contains(err.Error(), "has changed in the meantime") {
			t.Errorf("changed %v: %v", changed, err)
		}
	}
}

// After a name has been renamed, the Go of the document has the new one, and compiles.
func TestRenameInGo(t *testing.T) {
	rings.Test(t, "loads Go packages")
	e, text := seed(t)
	dir := e.dir
	for old, now := range map[string]string{"RunNextScheduledJob": "StartNextJob", "jobs": "runs", "CronJobControllerManager": "Cron"} {
		t.Run(old, func(t *testing.T) {
			if old != "RunNextScheduledJob" {
				rings.Explore(t, "loads Go packages again")
			}
			params := e.at("cronjob.ctrlkit", endOf(text[:regexp.MustCompile(`(?m)^(decl|   +) ?` + old).FindStringIndex(text)[1]]))
			params["newName"] = now
			var got changes
			e.call("textDocument/rename", params, &got)
			overlay := map[string][]byte{}
			for uri, edits := range got.Changes {
				path := strings.TrimPrefix(uri, "file://")
				content, err := os.ReadFile(path)
				must(t, err)
				slices.SortFunc(edits, func(a, b edit) int {
					return cmp.Or(a.Range.Start.Line-b.Range.Start.Line, a.Range.Start.Character-b.Range.Start.Character)
				})
				overlay[path] = []byte(apply(string(content), edits))
			}
			generated := string(overlay[e.path("zz_generated.cronjob.go")])
			if strings.Contains(generated, old+"(") || !strings.Contains(generated, now) {
				t.Errorf("the generated file has the old name: %d bytes", len(generated))
			}
			loaded, err := packages.Load(&packages.Config{Dir: dir, Tests: true, Mode: packages.LoadSyntax, Overlay: overlay}, ".", "..")
			must(t, err)
			for _, p := range loaded {
				for _, problem := range p.Errors {
					t.Errorf("%s: %s", p.ID, problem)
				}
			}
		})
	}
}
