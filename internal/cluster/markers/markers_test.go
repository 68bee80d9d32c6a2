// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package markers

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The markers are those of the project of a role: neither those of a module within it, nor those of
// whatever lies beside a role outside of any module.
func TestFor(t *testing.T) {
	const marker = "package op\n\n// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get\n"
	root := t.TempDir()
	for name, text := range map[string]string{
		"op/go.mod": "module op\n", "op/a.go": marker, "op/internal/b.go": marker, "op/tools/go.mod": "module tools\n", "op/tools/c.go": marker,
		"op/vendor/x/d.go": marker, "op/config/rbac/role.yaml": "", "op/role.yaml": "", "role.yaml": "",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := []string{"a.go", "b.go"}
	for role, want := range map[string][]string{"op/config/rbac/role.yaml": own, "op/config/rbac": own, "op/role.yaml": own, "role.yaml": nil} {
		found, err := For([]string{filepath.Join(root, role)})
		var got []string
		for _, m := range found {
			got = append(got, filepath.Base(m.Place.File))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", role, got, err, want)
		}
	}
}
