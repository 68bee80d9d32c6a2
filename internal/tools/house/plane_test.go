// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// seenKubernetes is the newest version of k8s.io/kubernetes of the libraries' minor that was looked
// at. If the control plane is of an earlier one, this says why.
const seenKubernetes = "v1.37.2"

// required returns the version of a module in a go.mod.
func required(t *testing.T, file, module string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	found := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s does not require %s", file, module)
	}
	return string(found[1])
}

// minorOfLibraries returns the minor version of Kubernetes whose libraries ctrlkit requires.
func minorOfLibraries(t *testing.T) string {
	t.Helper()
	return semver.MajorMinor(strings.Replace(required(t, "go.mod", "k8s.io/client-go"), "v0.", "v1.", 1))
}

const planeModule = "controlplane/kubernetes/go.mod"

// The pages say which Kubernetes the control plane is, and that of the libraries if it is another.
func TestPagesNameTheControlPlane(t *testing.T) {
	inRoot(t)
	plane := semver.MajorMinor(required(t, planeModule, "k8s.io/kubernetes"))
	for _, page := range []string{"README.md", "docs/ship.md"} {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, minor := range []string{plane, strings.Replace(minorOfLibraries(t), "v1.", "v0.", 1)} {
			if !strings.Contains(string(text), strings.TrimPrefix(minor, "v")) {
				t.Errorf("%s does not say %s", page, minor)
			}
		}
	}
}

// A later Kubernetes of the libraries' minor, which was not looked at, can be had as a module: then
// move controlplane/kubernetes to it, or say in seenKubernetes why not.
func TestNewerControlPlane(t *testing.T) {
	rings.Explore(t, "asks the module proxy")
	inRoot(t)
	list := exec.Command("go", "list", "-mod=mod", "-m", "-versions", "k8s.io/kubernetes")
	list.Env = append(os.Environ(), "GOWORK=off")
	output, err := list.Output()
	if err != nil {
		t.Skipf("the module proxy does not answer: %v", err)
	}
	if newer := newest(minorOfLibraries(t), strings.Fields(string(output))[1:], required(t, planeModule, "k8s.io/kubernetes"), seenKubernetes); newer != "" {
		t.Errorf("k8s.io/kubernetes %s can be had", newer)
	}
}

// newest returns the latest of versions of a minor, or of an earlier one, if it is later than those
// known; empty if none is.
func newest(minor string, versions []string, known ...string) string {
	last := ""
	for _, v := range append(known, versions...) {
		if semver.Prerelease(v) == "" && semver.Compare(semver.MajorMinor(v), minor) <= 0 && semver.Compare(v, last) > 0 {
			last = v
		}
	}
	for _, v := range known {
		if v == last {
			return ""
		}
	}
	return last
}

func TestNewest(t *testing.T) {
	for _, tt := range []struct{ minor, want, versions string }{
		{"v1.37", "", "v1.36.1 v1.36.3 v1.37.2"}, {"v1.37", "v1.37.3", "v1.37.3 v1.37.2 v1.38.0 v1.37.4-rc.0"}, {"v1.38", "v1.38.0", "v1.37.9 v1.38.0"},
	} {
		if got := newest(tt.minor, strings.Fields(tt.versions), "v1.36.3", "v1.37.2"); got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.minor, tt.versions, got, tt.want)
		}
	}
}
