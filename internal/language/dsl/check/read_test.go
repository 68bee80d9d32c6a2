// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

func TestModuleRoot(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "inner")
	below := filepath.Join(inner, "a", "b")
	for _, err := range []error{
		os.MkdirAll(below, 0o755),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/outer\n"), 0o644),
		os.WriteFile(filepath.Join(inner, "go.mod"), []byte("module example.com/inner\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for of, want := range map[string]string{dir: dir, inner: inner, below: inner, filepath.Join(dir, "other"): dir} {
		if root, found := check.ModuleRoot(of); root != want || !found {
			t.Errorf("%s: %s, %v, want %s", of, root, found, want)
		}
	}
	t.Chdir(below)
	if root, found := check.ModuleRoot("."); root != inner || !found {
		t.Errorf("the working directory: %s, %v", root, found)
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	if root, found := check.ModuleRoot(nowhere); root != nowhere || found {
		t.Errorf("without a module: %s, %v", root, found)
	}
	if name, path := check.GoPackage(below); name != "b" || path != "example.com/inner/a/b" {
		t.Errorf("package %s, %s", name, path)
	}
}
