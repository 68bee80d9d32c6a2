// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/dsl/check"
)

// TestGoldenDocuments generates the files in the golden directories from the documents beside them.
// TestGolden generates the same files from models made by hand.
func TestGoldenDocuments(t *testing.T) {
	loader := check.NewCache(check.GoLoader{})
	for _, name := range []string{"seed/manager", "selectors", "cluster", "lastelement", "values", "several", "own"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("golden", filepath.FromSlash(name))
			in, err := check.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			in.Dir = "."
			pkg, list, err := check.Check(t.Context(), in, loader)
			if err != nil || list.HasErrors() {
				t.Fatalf("%v, %v", err, list)
			}
			files, err := Generate(pkg)
			if err != nil {
				t.Fatal(err)
			}
			want := generatedFiles(t, dir)
			if len(files) != len(want) {
				t.Errorf("%d files generated, %d there", len(files), len(want))
			}
			for _, file := range files {
				if diff := cmp.Diff(string(want[file.Name]), string(file.Content)); diff != "" {
					t.Errorf("%s (-golden +generated from the document):\n%s", file.Name, diff)
				}
			}
		})
	}
}
