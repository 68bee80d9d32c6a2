// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
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

// So is the picture of the terminal, which plays by itself.
func TestTerminalPictureIsUpToDate(t *testing.T) {
	drawn := filepath.Join(t.TempDir(), "demo.svg")
	if err := execute(t, "terminal", "--title", "make demo", "../../docs/images/demo.cast", drawn); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(drawn)
	want, errWant := os.ReadFile("../../docs/images/demo.svg")
	if err != nil || errWant != nil || string(got) != string(want) {
		t.Errorf("docs/images/demo.svg is not what docs/images/demo.cast gives: %v, %v", err, errWant)
	}
}

func TestMistakesLeaveNoFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, cast := range []string{"/nowhere/none.cast", "main_test.go"} {
		if err := execute(t, "terminal", cast, out); err == nil {
			t.Errorf("%v: no error", cast)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was written all the same")
	}
}
