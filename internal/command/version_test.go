// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControlPlaneVersionIsThatOfItsModule(t *testing.T) {
	content, err := os.ReadFile("../../controlplane/kubernetes/go.mod")
	must(t, err)
	found := regexp.MustCompile(`k8s\.io/kubernetes (v\S+)`).FindSubmatch(content)
	if found == nil || string(found[1]) != controlPlaneVersion {
		t.Errorf("the module builds %q, the command says %s", found, controlPlaneVersion)
	}
}

func TestVersionsFromBuildInfo(t *testing.T) {
	info := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.1.0"},
		Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "abc"}},
		Deps:     []*debug.Module{{Path: "k8s.io/client-go", Version: "v0.37.2"}, {Path: "sigs.k8s.io/controller-runtime", Version: "v0.25.2"}},
	}
	got := versionsFrom(info)
	got.Go, got.Platform = "", ""
	want := versions{Version: "v0.1.0", Commit: "abc with uncommitted changes", Kubernetes: "v1.37.2", ControllerRuntime: "v0.25.2", ControlPlane: controlPlaneVersion}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := versionsFrom(nil); got.Version != "unknown" || got.Kubernetes != "unknown" {
		t.Errorf("without build information: %+v", got)
	}
}
