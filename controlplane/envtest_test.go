// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// TestEnvtestUsesTheAssets is what any user of controller-runtime does.
func TestEnvtestUsesTheAssets(t *testing.T) {
	starts(t)
	assets, err := controlplane.FindAssets(t.Context(), 0, controlplane.BuildOptions{Progress: os.Stderr})
	must(t, err)
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets.Dir,
		CRDDirectoryPaths:     []string{"testdata/crds"},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	must(t, err)
	defer func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	}()
	widget := &unstructured.Unstructured{}
	widget.SetAPIVersion("test.ctrlkit.dev/v1")
	widget.SetKind("Widget")
	widget.SetNamespace("default")
	widget.SetName("small")
	create(t, newClient(t, config), widget)
	user, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	must(t, err)
	kubectl, err := user.Kubectl()
	must(t, err)
	stdout, _, err := kubectl.Run("get", "widgets", "-o", "name")
	must(t, err)
	got, err := io.ReadAll(stdout)
	must(t, err)
	if want := "widget.test.ctrlkit.dev/small\n"; string(got) != want {
		t.Errorf("kubectl get: %q, want %q", got, want)
	}
}
