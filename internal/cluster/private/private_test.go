// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package private

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Whatever is at the place of a file, with whatever umask, the file is private afterwards, and what
// a link points to is as it was.
func TestPrivateFiles(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for how, write := range map[string]func(name string) error{
		"Write":  func(name string) error { return Write(name, []byte("new")) },
		"Create": func(name string) error { return writeTo(Create(name)) },
		"Append": func(name string) error { return writeTo(Append(name)) },
	} {
		for before, prepare := range map[string]func(name, other string) error{
			"nothing":        func(string, string) error { return nil },
			"a public file":  func(name, _ string) error { return os.WriteFile(name, []byte("old"), 0o666) },
			"a link":         func(name, other string) error { return os.Symlink(other, name) },
			"a link to none": func(name, other string) error { return os.Symlink(other+"-of-none", name) },
		} {
			dir := t.TempDir()
			name, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
			if err := os.WriteFile(other, []byte("other"), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := prepare(name, other); err != nil {
				t.Fatal(err)
			}
			if err := write(name); err != nil {
				t.Errorf("%s over %s: %v", how, before, err)
			}
			info, err := os.Lstat(name)
			content, _ := os.ReadFile(name)
			if err != nil || info.Mode() != 0o600 || string(content) != "new" {
				t.Errorf("%s over %s: %v, %q, error %v", how, before, info.Mode(), content, err)
			}
			if content, _ := os.ReadFile(other); string(content) != "other" {
				t.Errorf("%s over %s: what the link points to is %q", how, before, content)
			}
			if left, _ := os.ReadDir(dir); len(left) != 2 {
				t.Errorf("%s over %s leaves %v", how, before, left)
			}
		}
	}
}

func writeTo(f *os.File, err error) error {
	if err != nil {
		return err
	}
	if _, err := f.WriteString("new"); err != nil {
		return err
	}
	return f.Close()
}

// A file that is private grows, and what keeps nothing is written to, not replaced.
func TestAppendAndDevices(t *testing.T) {
	dir := t.TempDir()
	name, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	for range 2 {
		if err := writeTo(Append(name)); err != nil {
			t.Fatal(err)
		}
	}
	if content, _ := os.ReadFile(name); string(content) != "newnew" {
		t.Errorf("the file has %q", content)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // only read from
	for _, device := range []string{pipe, "/dev/null"} {
		if err := Write(device, []byte("new")); err != nil {
			t.Error(err)
		}
	}
	read := make([]byte, 3)
	if _, err := reader.Read(read); err != nil || string(read) != "new" {
		t.Errorf("the pipe has %q, error %v", read, err)
	}
	if err := Write(dir, nil); err == nil {
		t.Error("a directory was replaced")
	}
}
