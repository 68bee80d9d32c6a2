// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// The directory for logs is created before the programs are looked for, and may exist. A file in its
// place is named.
func TestLogDirectoryIsCreated(t *testing.T) {
	dir := t.TempDir()
	missing := controlplane.Assets{Dir: filepath.Join(dir, "no-programs")} // so that nothing starts
	logs := filepath.Join(dir, "a", "logs")
	for range 2 {
		_, err := controlplane.Start(t.Context(), controlplane.Options{Assets: missing, LogDir: logs})
		if err == nil || strings.Contains(err.Error(), "logs") {
			t.Errorf("without programs: %v", err)
		}
		if info, err := os.Stat(logs); err != nil || !info.IsDir() || info.Mode().Perm()&0o700 != 0o700 {
			t.Errorf("the directory for logs: %v, %v", info, err)
		}
	}
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{file: file + " is a file", filepath.Join(file, "logs"): "creating the directory for logs"} {
		_, err := controlplane.Start(t.Context(), controlplane.Options{Assets: missing, LogDir: path})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}
