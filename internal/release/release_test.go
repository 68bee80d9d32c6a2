// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// A small repository with the same layout: building the real command for two platforms takes
// minutes.
func newRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":              "module github.com/ctrlkit/ctrlkit\n\ngo 1.26\n\n// sigs.k8s.io/controller-runtime v0.25.2\n",
		"cmd/ctrlkit/main.go": "package main\n\nfunc main() { println(\"hello\") }\n",
		"CHANGELOG.md":        "| ctrlkit | controller-runtime |\n|---|---|\n| 0.1 | v0.25 |\n\n## Unreleased\n\n## 0.1.0\n\nThe first.\n",
		"LICENSE":             "Apache-2.0\n",
		"README.md":           "# ctrlkit\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "--quiet")
	git(t, dir, "config", "user.name", "Test")
	git(t, dir, "config", "user.email", "test@example.com")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "--message", "Begin")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, output)
	}
	return strings.TrimSpace(string(output))
}

func newRelease(t *testing.T, source string) *release {
	t.Setenv("GIT_COMMITTER_NAME", "Test")
	t.Setenv("GIT_COMMITTER_EMAIL", "test@example.com")
	own := runtime.GOOS + "/" + runtime.GOARCH
	return &release{version: "v0.1.0", source: source, out: filepath.Join(t.TempDir(), "dist"), platforms: []string{own, "windows/arm64"}, log: io.Discard}
}

func TestRelease(t *testing.T) {
	source := newRepository(t)
	r := newRelease(t, source)
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := git(t, source, "tag"), "controlplane/kubernetes/v0.1.0\nv0.1.0"; got != want {
		t.Errorf("tags %q, want %q", got, want)
	}
	own, windows := fmt.Sprintf("ctrlkit_0.1.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH), "ctrlkit_0.1.0_windows_arm64.zip"
	sums := checkSums(t, r.out)
	if len(sums) != 2 || sums[own] == "" || sums[windows] == "" {
		t.Errorf("the checksums are of %v", sums)
	}
	checkManifest(t, r.out, sums)

	program := filepath.Join(t.TempDir(), "ctrlkit")
	if err := os.WriteFile(program, untar(t, filepath.Join(r.out, own))["ctrlkit"], 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil || info.Main.Version != "v0.1.0" {
		t.Errorf("the program says it is %v, %v", info, err)
	}
	if output, err := exec.Command(program).CombinedOutput(); err != nil || string(output) != "hello\n" {
		t.Errorf("it prints %q, %v", output, err)
	}
	names := []string{}
	z, err := zip.OpenReader(filepath.Join(r.out, windows))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"ctrlkit.exe", "LICENSE", "README.md"}, names); diff != "" {
		t.Errorf("the zip: %s", diff)
	}

	again := newRelease(t, source)
	git(t, source, "tag", "--delete", "v0.1.0", "controlplane/kubernetes/v0.1.0")
	if again.dry = true; again.make(t.Context()) != nil {
		t.Fatal("a second release failed")
	}
	if diff := cmp.Diff(sums, checkSums(t, again.out)); diff != "" {
		t.Errorf("the same commit gives other archives: %s", diff)
	}
	if tags := git(t, source, "tag"); tags != "" {
		t.Errorf("a dry run sets the tags %s", tags)
	}
}

func TestReleaseIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, source string, r *release)
		want   string
	}{
		"no version":    {func(_ *testing.T, _ string, r *release) { r.version = "0.1.0" }, `"0.1.0" is not a version`},
		"no entry":      {func(_ *testing.T, _ string, r *release) { r.version = "v0.1.1" }, `no section "## 0.1.1"`},
		"another minor": {func(_ *testing.T, _ string, r *release) { r.version = "v0.2.0" }, `no row "| 0.2 | v0.25 |"`},
		"tag":           {func(t *testing.T, source string, _ *release) { git(t, source, "tag", "controlplane/kubernetes/v0.1.0") }, "the tag controlplane/kubernetes/v0.1.0 exists"},
		"changes": {func(t *testing.T, source string, _ *release) {
			if err := os.WriteFile(filepath.Join(source, "new.go"), []byte("package new"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "?? new.go"},
		"old files": {func(t *testing.T, _ string, r *release) {
			r.out = t.TempDir()
			os.WriteFile(filepath.Join(r.out, "x"), nil, 0o600)
		}, "is not empty"}, //nolint:errcheck // the test fails then
		"platform": {func(_ *testing.T, _ string, r *release) { r.platforms = []string{"linux"} }, `the platform "linux"`},
		"compiler": {func(t *testing.T, source string, _ *release) {
			if err := os.WriteFile(filepath.Join(source, "cmd/ctrlkit/main.go"), []byte("package main\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			git(t, source, "commit", "--quiet", "--all", "--message", "Break")
		}, "function main is undeclared"},
	} {
		t.Run(name, func(t *testing.T) {
			source := newRepository(t)
			r := newRelease(t, source)
			tt.change(t, source, r)
			before := git(t, source, "tag")
			err := r.make(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got the error %v, want %q", err, tt.want)
			}
			if after := git(t, source, "tag"); after != before {
				t.Errorf("tags %q, before %q", after, before)
			}
		})
	}
}

// checkSums compares the archives with checksums.txt, and returns it.
func checkSums(t *testing.T, dir string) map[string]string {
	text, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != want {
			t.Errorf("%s has another checksum", name)
		}
		sums[name] = want
	}
	return sums
}

func checkManifest(t *testing.T, dir string, sums map[string]string) {
	text, err := os.ReadFile(filepath.Join(dir, "ctrlkit.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.Spec.Version != "v0.1.0" || len(m.Spec.Platforms) != 2 {
		t.Errorf("the manifest is\n%s", text)
	}
	for _, p := range m.Spec.Platforms {
		name := p.URI[strings.LastIndex(p.URI, "/")+1:]
		if p.SHA256 != sums[name] || !strings.HasPrefix(p.URI, downloads+"v0.1.0/") || !strings.HasPrefix(p.Bin, "kubectl-ctrlkit") {
			t.Errorf("the manifest has %+v", p)
		}
	}
}

func untar(t *testing.T, name string) map[string][]byte {
	packed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
