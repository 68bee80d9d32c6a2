// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// TestFiles fixes each file of testdata/files.txtar, of which FILE.want says what becomes of it, and
// FILE.left what is left. A file without them is not changed.
func TestFiles(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/files.txtar")
	if err != nil {
		t.Fatal(err)
	}
	want, dir := map[string]string{}, t.TempDir()
	for _, file := range archive.Files {
		want[file.Name] = string(file.Data)
		if strings.HasSuffix(file.Name, ".want") || strings.HasSuffix(file.Name, ".left") {
			continue
		}
		write(t, filepath.Join(dir, file.Name), string(file.Data))
	}
	plan := load(t, dir)
	after, left := map[string]string{}, map[string]string{}
	for _, file := range plan.Files {
		after[relative(t, dir, file.Name)] = string(file.After)
	}
	for _, remark := range plan.Left {
		left[relative(t, dir, remark.File)] += fmt.Sprintf("%d: %s: %s\n", remark.Line, remark.Name, remark.Instead)
	}
	for _, file := range archive.Files {
		if filepath.Ext(file.Name) != ".go" {
			continue
		}
		t.Run(file.Name, func(t *testing.T) {
			if diff := cmp.Diff(want[file.Name+".want"], after[file.Name]); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(want[file.Name+".left"], left[file.Name]); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	again(t, dir, plan)
}

// again carries out a plan, and wants that there is nothing more to do but what is left.
func again(t *testing.T, dir string, plan *Plan) {
	for _, file := range plan.Files {
		write(t, file.Name, string(file.After))
	}
	for _, file := range plan.Remove {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	next := load(t, dir)
	if len(next.Remove)+len(next.Generate) > 0 {
		t.Errorf("again: removes %v, generates %v", next.Remove, next.Generate)
	}
	for _, file := range next.Files {
		t.Errorf("again: %s\n%s", file.Name, cmp.Diff(string(file.Before), string(file.After)))
	}
}

func load(t *testing.T, dir string) *Plan {
	t.Helper()
	rings.Test(t, "runs the go command")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOWORK", "off")
	plan, err := Load(t.Context(), Options{Dir: dir, Patterns: []string{"./..."}, From: []string{"example.com/op/copied"}})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func relative(t *testing.T, dir, name string) string {
	t.Helper()
	name, err := filepath.Rel(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(name)
}

func TestNothingToFix(t *testing.T) {
	rings.Test(t, "runs the go command")
	if _, err := Load(t.Context(), Options{Dir: t.TempDir(), Patterns: []string{"./..."}}); err == nil {
		t.Error("no error without a module")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/op\n")
	write(t, filepath.Join(dir, "op.go"), "package op\n\nfunc (\n")
	if _, err := Load(t.Context(), Options{Dir: dir, Patterns: []string{"./..."}}); err == nil || !strings.Contains(err.Error(), "op.go:3:8") {
		t.Errorf("a file that can't be parsed: %v", err)
	}
}
