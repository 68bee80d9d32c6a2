// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Tests that have passed run again when something has changed that they are made of, or that they have read,
// and not when something else has.
func TestPassed(t *testing.T) {
	const key = "./a race=false"
	root, outside := t.TempDir(), t.TempDir()
	write := func(dir, name string, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(age.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	write(root, "a/read", time.Hour)
	write(root, "b/listed", time.Hour)
	write(root, "a/other", time.Hour)
	write(outside, "read", time.Hour)
	t.Setenv("SUITE_READ", "1")
	t.Setenv("SUITE_OTHER", "1")
	log := filepath.Join(t.TempDir(), "log")
	text := "# test log\ngetenv SUITE_READ\nopen read\nstat none\nopen " + filepath.Join(outside, "read") + "\nchdir ..\nopen b\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "bin", "passed.json")
	memory := func(code string) *passed {
		t.Helper()
		p, err := readPassed(file, root)
		if err != nil {
			t.Fatal(err)
		}
		p.code = map[string]string{"./a": code}
		return p
	}
	note := func() {
		t.Helper()
		p := memory("1")
		if err := p.note(key, "./a", log); err != nil {
			t.Fatal(err)
		}
		if err := p.write(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		change func()
		code   string
		again  bool
	}{
		{name: "nothing"},
		{name: "its code", code: "2", again: true},
		{name: "a file that it reads", change: func() { write(root, "a/read", time.Minute) }, again: true},
		{name: "a file that was not there", change: func() { write(root, "a/none", time.Minute) }, again: true},
		{name: "a directory that it lists", change: func() { write(root, "b/more", time.Minute) }, again: true},
		{name: "a variable that it reads", change: func() { t.Setenv("SUITE_READ", "2") }, again: true},
		{name: "another file", change: func() { write(root, "a/other", time.Minute) }},
		{name: "a file outside", change: func() { write(outside, "read", time.Minute) }},
		{name: "another variable", change: func() { t.Setenv("SUITE_OTHER", "2") }},
	} {
		note()
		if tt.change != nil {
			tt.change()
		}
		code := "1"
		if tt.code != "" {
			code = tt.code
		}
		if got := !memory(code).unchanged(key, "./a"); got != tt.again {
			t.Errorf("%s has changed: it runs again: %t", tt.name, got)
		}
	}
	note()
	if memory("1").unchanged("./b race=false", "./a") {
		t.Error("what has never passed does not run")
	}
	write(root, "a/read", 0)
	note()
	if p := memory("1"); p.unchanged(key, "./a") {
		t.Error("a file that may still change counts as unchanged")
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if memory("1").unchanged(key, "./a") {
		t.Error("a broken memory has an entry")
	}
}
