// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func execute(t *testing.T, args ...string) error {
	t.Helper()
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	return cmd.ExecuteContext(t.Context())
}

// The pictures of the documentation are what the program draws; "make pictures" brings them up to
// date.
func TestWorkflowPicturesAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := execute(t, "workflows", dir); err != nil {
		t.Fatal(err)
	}
	drawn, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(drawn) == 0 {
		t.Fatalf("nothing was drawn: %v", err)
	}
	for _, file := range drawn {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("../../docs/images", filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/images/%s (-there +drawn):\n%s", filepath.Base(file), diff)
		}
	}
}

func TestRecordAndDraw(t *testing.T) {
	dir := t.TempDir()
	cast, animated, still := filepath.Join(dir, "x.cast"), filepath.Join(dir, "x.svg"), filepath.Join(dir, "still.svg")
	script := `printf 'one\n'; printf '\033[32mtwo\033[0m --for\n'`
	for _, args := range [][]string{
		{"record", "--size", "40x5", "--for", "1m", cast, "sh", "-c", script},
		{"terminal", "--title", "a test", cast, animated},
		{"terminal", "--still", "--from", "0s", cast, still},
	} {
		if err := execute(t, args...); err != nil {
			t.Fatalf("%s: %v", args[0], err)
		}
	}
	for _, file := range []string{animated, still} {
		picture, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(picture), "two") {
			t.Errorf("%s: %v, want it to show two:\n%s", filepath.Base(file), err, picture)
		}
	}
}

func TestMistakesLeaveNoFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{
		{"record", "--size", "big", out, "true"},
		{"record", out, "/nowhere/none"},
		{"terminal", "/nowhere/none.cast", out},
		{"terminal", "main_test.go", out},
	} {
		if err := execute(t, args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was written all the same")
	}
}
