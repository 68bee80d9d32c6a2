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
	"github.com/ctrlkit/ctrlkit/internal/rings"
)

// TestEnvtestUsesTheAssets is what any user of controller-runtime does.
func TestEnvtestUsesTheAssets(t *testing.T) {
	rings.Test(t, "starts a control plane")
	t.Parallel()
	assets, err := controlplane.FindAssets(t.Context(), 0, controlplane.BuildOptions{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets.Dir,
		CRDDirectoryPaths:     []string{"testdata/crds"},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, err := kubectl.Run("get", "widgets", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if want := "widget.test.ctrlkit.dev/small\n"; string(got) != want {
		t.Errorf("kubectl get: %q, want %q", got, want)
	}
}
