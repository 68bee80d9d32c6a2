// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// What the workspace compiles is what a project of a user compiles, so that the tests that build such
// a project find the library in the build cache. A module of the workspace that requires a later
// version than the library does has client-go, and all above it, compiled twice.
func TestWorkspaceChoosesTheVersionsOfTheLibrary(t *testing.T) {
	inRoot(t)
	text, err := os.ReadFile("go.work")
	must(t, err)
	workspace, err := modfile.ParseWork("go.work", text, nil)
	must(t, err)
	library := requirements(t, "go.mod")
	for _, use := range workspace.Use {
		file := filepath.Join(use.Path, "go.mod")
		for path, version := range requirements(t, file) {
			if isLater(version, library[path]) {
				t.Errorf("%s requires %s %s, the library %s: go get %[2]s@%[3]s in each module", file, path, version, library[path])
			}
		}
	}
}

func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	parsed, err := modfile.Parse(file, text, nil)
	must(t, err)
	versions := map[string]string{}
	for _, r := range parsed.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}

// isLater reports whether a version is later than that of the library, which does not require every
// module.
func isLater(version, library string) bool {
	return library != "" && semver.Compare(version, library) > 0
}

func TestIsLater(t *testing.T) {
	for _, tt := range []struct {
		version, library string
		want             bool
	}{{"v0.16.0", "v0.15.0", true}, {"v0.15.0", "v0.15.0", false}, {"v0.9.0", "v0.15.0", false}, {"v1.0.0", "", false}} {
		if got := isLater(tt.version, tt.library); got != tt.want {
			t.Errorf("%s, and %s in the library: got %t", tt.version, tt.library, got)
		}
	}
}

// A module outside of the workspace lists the requirements of what it imports of ours itself, and is not
// built with the others: it needs each module that they need, in a version as late.
func TestModuleOfWranglerHasWhatItsImportsRequire(t *testing.T) {
	rings.Test(t, "asks the go command")
	inRoot(t)
	const dir = "bench/wrangler"
	files, err := filepath.Glob(dir + "/*.go")
	must(t, err)
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}"}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		must(t, err)
		for _, i := range file.Imports {
			if path := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(path, "github.com/ctrlkit/ctrlkit/") {
				args = append(args, path)
			}
		}
	}
	output, err := exec.Command("go", args...).Output()
	must(t, err)
	required := requirements(t, dir+"/go.mod")
	for line := range strings.Lines(string(output)) {
		path, version, known := strings.Cut(strings.TrimSpace(line), " ")
		if !known || version == "" { // a package of Go, or of the workspace
			continue
		}
		if has := required[path]; has == "" || semver.Compare(has, version) < 0 {
			t.Errorf("%s/go.mod requires %q of %s, and what it imports requires %s: run GOWORK=off go mod tidy there", dir, has, path, version)
			required[path] = version // said once
		}
	}
}
