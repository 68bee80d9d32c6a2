// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A memoryTest has the memory of a repository in a temporary directory, with a package whose tests
// have read some files.
type memoryTest struct {
	*testing.T
	root, outside string
	log           string // what the tests have read
}

const keyOfTest = "./a race=false"

func newMemoryTest(t *testing.T) *memoryTest {
	m := &memoryTest{T: t, root: t.TempDir(), outside: t.TempDir()}
	m.write(m.root, "a/read", time.Hour)
	m.write(m.root, "b/listed", time.Hour)
	m.write(m.root, "a/other", time.Hour)
	m.write(m.outside, "read", time.Hour)
	t.Setenv("SUITE_READ", "1")
	t.Setenv("SUITE_OTHER", "1")
	m.log = filepath.Join(m.outside, "log")
	text := "# test log\ngetenv SUITE_READ\nopen read\nstat none\nopen " + filepath.Join(m.outside, "read") + "\nchdir ..\nopen b\n"
	if err := os.WriteFile(m.log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// write writes a file that was changed some time ago.
func (m *memoryTest) write(dir, name string, age time.Duration) {
	m.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(age.String()), 0o600); err != nil {
		m.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
		m.Fatal(err)
	}
}

func (m *memoryTest) read(code string) *passed {
	m.Helper()
	p, err := readPassed(filepath.Join(m.root, "bin", "passed.json"), m.root)
	if err != nil {
		m.Fatal(err)
	}
	p.code = map[string]string{"./a": code}
	return p
}

// note notes that the tests have passed, with the code 1.
func (m *memoryTest) note() {
	m.Helper()
	p := m.read("1")
	if err := p.note(keyOfTest, "./a", m.log); err != nil {
		m.Fatal(err)
	}
	if err := p.write(); err != nil {
		m.Fatal(err)
	}
}

// Tests that have passed run again when something has changed that they are made of, or that they
// have read, and not when something else has.
func TestPassed(t *testing.T) {
	m := newMemoryTest(t)
	for _, tt := range []struct {
		name   string
		change func()
		code   string
		again  bool
	}{
		{name: "nothing"},
		{name: "its code", code: "2", again: true},
		{name: "a file that it reads", change: func() { m.write(m.root, "a/read", time.Minute) }, again: true},
		{name: "a file that was not there", change: func() { m.write(m.root, "a/none", time.Minute) }, again: true},
		{name: "a directory that it lists", change: func() { m.write(m.root, "b/more", time.Minute) }, again: true},
		{name: "a variable that it reads", change: func() { t.Setenv("SUITE_READ", "2") }, again: true},
		{name: "another file", change: func() { m.write(m.root, "a/other", time.Minute) }},
		{name: "a file outside", change: func() { m.write(m.outside, "read", time.Minute) }},
		{name: "another variable", change: func() { t.Setenv("SUITE_OTHER", "2") }},
	} {
		m.note()
		if tt.change != nil {
			tt.change()
		}
		code := "1"
		if tt.code != "" {
			code = tt.code
		}
		if got := !m.read(code).unchanged(keyOfTest, "./a"); got != tt.again {
			t.Errorf("%s has changed: it runs again: %t", tt.name, got)
		}
	}
	m.note()
	if m.read("1").unchanged("./b race=false", "./a") {
		t.Error("what has never passed does not run")
	}
	m.write(m.root, "a/read", 0)
	m.note()
	if p := m.read("1"); p.unchanged(keyOfTest, "./a") {
		t.Error("a file that may still change counts as unchanged")
	}
	if err := os.WriteFile(filepath.Join(m.root, "bin", "passed.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m.read("1").unchanged(keyOfTest, "./a") {
		t.Error("a broken memory has an entry")
	}
}
