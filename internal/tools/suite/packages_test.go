// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A package is tested in each ring in which it has a test, and its tests are not linked for another.
func TestTestsIn(t *testing.T) {
	const header = "package p\n\nimport (\n\t\"testing\"\n\n\t\"" + module + "/internal/tools/rings\"\n)\n\n"
	for name, tt := range map[string]struct {
		text         string
		first, later bool
	}{
		"none":            {text: "package p\n\nfunc help() {}\n"},
		"a unit test":     {text: "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Log() }\n", first: true},
		"an example":      {text: "package p\n\nfunc ExampleA() {}\n", first: true},
		"second ring":     {text: header + "func TestA(t *testing.T) {\n\trings.Test(t, \"waits\")\n}\n", later: true},
		"third ring":      {text: header + "func TestA(t *testing.T) {\n\trings.Explore(t, \"waits\")\n}\n", later: true},
		"both":            {text: header + "func TestA(t *testing.T) {\n\trings.Test(t, \"waits\")\n}\n\nfunc FuzzB(f *testing.F) {}\n", first: true, later: true},
		"only in a table": {text: header + "func TestA(t *testing.T) {\n\tfor range 2 {\n\t\trings.Test(t, \"waits\")\n\t}\n}\n", first: true, later: true},
		"main":            {text: header + "func TestMain(m *testing.M) { m.Run() }\n", later: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := testsIn(dir)
			if err != nil || got.first != tt.first || got.later != tt.later {
				t.Errorf("got %+v and %v, want %t, %t", got, err, tt.first, tt.later)
			}
		})
	}
	if got, err := testsIn(t.TempDir()); err != nil || got.first || got.later {
		t.Errorf("without a file: %+v, %v", got, err)
	}
}

// The lists name packages that are there, and what runs only with the race detector has no test that
// waits for the second ring.
func TestListsOfPackages(t *testing.T) {
	t.Chdir("../../..")
	var missing []string
	for _, dir := range slices.Concat(raced, racedLater, alone, longest) {
		if got, err := testsIn(dir); err != nil || !got.first && !got.later {
			missing = append(missing, dir)
		}
	}
	if diff := cmp.Diff([]string(nil), missing); diff != "" {
		t.Errorf("these have no tests: %s", diff)
	}
	for dir, want := range map[string]tests{
		"./condition": {dir: "./condition", first: true}, "./external": {dir: "./external", first: true, later: true},
		"./examples/internal/soak": {dir: "./examples/internal/soak", first: true, later: true},
	} {
		got, err := testsIn(dir)
		if err != nil || got != want {
			t.Errorf("got %+v and %v, want %+v", got, err, want)
		}
	}
}
