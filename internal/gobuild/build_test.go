// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// goIn prepares calls of the go command in a directory.
func goIn(dir string) func(context.Context, ...string) *exec.Cmd {
	return func(ctx context.Context, args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, "go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		return command
	}
}

// module writes a module with two packages and a program. The text makes it one that the go command
// has never compiled.
func module(t *testing.T, text string) (dir string) {
	t.Helper()
	rings.Test(t, "runs the go command")
	dir = t.TempDir()
	for name, content := range map[string]string{
		"go.mod":     "module example.com/tiny\n\ngo 1.26.0\n",
		"a/a.go":     "package a\n\nconst Text = `" + text + "`\n",
		"b/b.go":     "package b\n\nimport \"example.com/tiny/a\"\n\nconst Text = a.Text\n",
		"cmd/cmd.go": "package main\n\nimport \"example.com/tiny/b\"\n\nfunc main() { println(b.Text) }\n",
		"bad/bad.go": "package main\n\nfunc main() { undefinedFunction() }\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBuild(t *testing.T) {
	dir := module(t, t.TempDir())
	var words strings.Builder
	b := &Build{Command: goIn(dir), Packages: []string{"./cmd"}, Words: &words}
	b.survey(t.Context())
	if got, want := b.String(), "0 of 2 packages"; got != want {
		t.Errorf("before the build it says %q, want %q", got, want)
	}
	program := filepath.Join(t.TempDir(), "program")
	if err := b.Run(t.Context(), "-o", program); err != nil || words.Len() > 0 {
		t.Errorf("%v, with the words %q", err, &words)
	}
	if got, want := b.String(), "linking"; got != want {
		t.Errorf("after the build it says %q, want %q", got, want)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
}

func TestBuildPassesOnTheWordsOfTheCompiler(t *testing.T) {
	var words strings.Builder
	b := &Build{Command: goIn(module(t, "")), Packages: []string{"./bad"}, Words: &words}
	if err := b.Run(t.Context(), "-o", filepath.Join(t.TempDir(), "program")); err == nil || !strings.Contains(words.String(), "undefined: undefinedFunction\n") {
		t.Errorf("%v, with the words %q", err, &words)
	}
}
