// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
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
