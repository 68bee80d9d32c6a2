// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
	simreport "github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A recording and a report are for their owner alone, also in the place of a file that others may
// read, and of a link to one.
func TestFilesOfCommandsArePrivate(t *testing.T) {
	for name, write := range map[string]func(file string) error{
		"record":     func(file string) error { return (&recordFlags{file: file}).write(io.Discard, &recording.Recording{}) },
		"sim --json": func(file string) error { return writeReports(&simreport.Document{}, file, "") },
		"sim --html": func(file string) error { return writeReports(&simreport.Document{}, "", file) },
	} {
		dir := t.TempDir()
		public, link := filepath.Join(dir, "public"), filepath.Join(dir, "link")
		must(t, os.WriteFile(public, []byte("before"), 0o644))
		must(t, os.Symlink(public, link))
		must(t, write(link))
		if content, err := os.ReadFile(public); string(content) != "before" {
			t.Errorf("%s has written through a link: %q, %v", name, content, err)
		}
		must(t, write(public))
		for _, file := range []string{public, link} {
			if info, err := os.Lstat(file); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %s has mode %v, %v", name, file, info.Mode(), err)
			}
		}
	}
}
