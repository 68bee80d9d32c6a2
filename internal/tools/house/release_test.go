// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What a release is made of is there: the command, the files of the archives, and the row of the
// changelog that the release asks for.
func TestReleaseIsMadeOfWhatIsThere(t *testing.T) {
	inRoot(t)
	text, err := os.ReadFile(".goreleaser.yaml")
	must(t, err)
	var release struct {
		Builds   []struct{ Main string }
		Archives []struct{ Files []struct{ Src string } }
	}
	must(t, yaml.Unmarshal(text, &release))
	if len(release.Builds) == 0 || len(release.Archives) == 0 {
		t.Fatalf("%+v", release)
	}
	for _, b := range release.Builds {
		if main, err := os.ReadFile(filepath.Join(b.Main, "main.go")); err != nil || !strings.Contains(string(main), "\npackage main\n") {
			t.Errorf("%s is no command: %v", b.Main, err)
		}
	}
	for _, a := range release.Archives {
		for _, f := range a.Files {
			if _, err := os.Stat(f.Src); err != nil {
				t.Error(err)
			}
		}
	}
	module, err := os.ReadFile("go.mod")
	must(t, err)
	changelog, err := os.ReadFile("CHANGELOG.md")
	must(t, err)
	required := regexp.MustCompile(`sigs.k8s.io/controller-runtime (v\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	if row := regexp.MustCompile(`(?m)^\| \d+\.\d+ [^|]*\| ` + regexp.QuoteMeta(required) + ` \|`); !row.Match(changelog) {
		t.Errorf("the table of CHANGELOG.md has no row with controller-runtime %s", required)
	}
}
