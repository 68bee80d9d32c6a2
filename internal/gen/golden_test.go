// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden packages")

// TestGolden compares what is generated with packages that are compiled (go vet ./...) and tested
// (package golden).
func TestGolden(t *testing.T) {
	for name, pkg := range goldenModels() {
		t.Run(name, func(t *testing.T) {
			files, err := Generate(pkg)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join("golden", filepath.FromSlash(name))
			want := generatedFiles(t, dir)
			for _, file := range files {
				if *update && !bytes.Equal(want[file.Name], file.Content) {
					writeGolden(t, filepath.Join(dir, file.Name), file.Content)
				}
				if diff := cmp.Diff(string(want[file.Name]), string(file.Content)); diff != "" {
					t.Errorf("%s is not what is generated now (-golden +generated), rewrite it with -update:\n%s", file.Name, diff)
				}
				delete(want, file.Name)
			}
			for stale := range want {
				t.Errorf("%s is not generated any more: remove it", stale)
			}
		})
	}
}

// generatedFiles returns the files of a directory that the generator wrote.
func generatedFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, generated := SourceOf(content); generated {
			files[filepath.Base(path)] = content
		}
	}
	return files
}

func writeGolden(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
