// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"path/filepath"
	"testing"
)

// An operator knows no --context: it gets a file in which that is the current one. Without it, it
// gets the files of the user, so that what an authenticator stores there is not lost.
func TestOperatorGetsTheContextThatWasNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: a,
contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b, namespace: shop}}],
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}, {name: b, cluster: {server: "https://127.0.0.1:2"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", file)
	for _, test := range []struct {
		named Kubeconfig
		want  string
		ours  bool
	}{
		{Kubeconfig{}, `context "a" at https://127.0.0.1:1`, false},
		{Kubeconfig{File: file}, `context "a" at https://127.0.0.1:1`, false},
		{Kubeconfig{Context: "b"}, `context "b" at https://127.0.0.1:2`, true},
		{Kubeconfig{File: file, Context: "b"}, `context "b" at https://127.0.0.1:2`, true},
	} {
		named, err := test.named.Load()
		must(t, err)
		path, remove, err := test.named.forOperator()
		must(t, err)
		operators, err := Kubeconfig{File: path}.Load()
		must(t, err)
		if named.String() != test.want || operators.String() != test.want || (path != file) != test.ours {
			t.Errorf("%+v: run uses %s, and the operator that of %s, %s; want %s", test.named, named, path, operators, test.want)
		}
		must(t, remove())
		if _, err := os.Stat(path); (err == nil) == test.ours {
			t.Errorf("%+v: after the run, %s: %v", test.named, path, err)
		}
	}
}
