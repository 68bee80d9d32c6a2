// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

func TestWriteKubeconfigCanBeUndone(t *testing.T) {
	starts(t)
	plane := shared.ForTest(t)
	file := filepath.Join(t.TempDir(), "config")
	const mine = `apiVersion: v1
kind: Config
clusters: [{name: mine, cluster: {server: https://mine.example.com}}]
contexts: [{name: mine, context: {cluster: mine, user: ""}}]
current-context: mine
`
	must(t, os.WriteFile(file, []byte(mine), 0o600))
	before, err := clientcmd.LoadFromFile(file)
	must(t, err)
	restore, err := plane.WriteKubeconfig(file)
	must(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", file)
	must(t, err)
	if err := newClient(t, config).List(t.Context(), &corev1.NamespaceList{}); err != nil {
		t.Errorf("using the file: %v", err)
	}
	must(t, restore())
	after, err := clientcmd.LoadFromFile(file)
	must(t, err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the file after it was restored (-before +after):\n%s", diff)
	}
}

func TestWriteKubeconfigRemovesTheFileItMade(t *testing.T) {
	starts(t)
	file := filepath.Join(t.TempDir(), "config")
	restore, err := shared.ForTest(t).WriteKubeconfig(file)
	must(t, err)
	must(t, restore())
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file: %v, want that it does not exist", err)
	}
}

func TestKubectlListsEditsAndDeletes(t *testing.T) {
	starts(t)
	plane := shared.ForTest(t)
	namespace := newNamespace(t, newClient(t, plane.Config()))
	editor := filepath.Join(t.TempDir(), "editor")
	must(t, os.WriteFile(editor, []byte("#!/bin/sh\nsed -i.bak 's/size: 1/size: 2/' \"$1\"\n"), 0o755))
	kubectl := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), plane.Assets().Program(controlplane.KubectlProgram), append([]string{"--namespace", namespace}, args...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig(), "KUBE_EDITOR="+editor, "HOME="+t.TempDir())
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
		}
		return strings.TrimSpace(string(output))
	}
	kubectl("create", "-f", "testdata/widget.yaml")
	if got, want := kubectl("get", "widgets", "-o", "name"), "widget.test.ctrlkit.dev/small"; got != want {
		t.Errorf("get: %q, want %q", got, want)
	}
	kubectl("edit", "widget", "small")
	if got, want := kubectl("get", "widget", "small", "-o", "jsonpath={.spec.size}"), "2"; got != want {
		t.Errorf("after the edit its size is %q, want %q", got, want)
	}
	kubectl("delete", "widget", "small")
	if got, want := kubectl("get", "widgets"), "No resources found"; !strings.HasPrefix(got, want) {
		t.Errorf("after the deletion: %q, want %q", got, want)
	}
	if got := kubectl("version"); strings.Contains(got, "$Format") || strings.Count(got, "Version: v1.") != 2 {
		t.Errorf("version: %q, want that of a release for client and server", got)
	}
}
