// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildFromTheDownloadedModule builds in the module cache, as a user does
// who installed the command and has no checkout.
func TestBuildFromTheDownloadedModule(t *testing.T) {
	source, _ := useSource(t, smallMain)
	const version = "v0.1.0"
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(serveModule(t, source, version)))
	t.Setenv("GOSUMDB", "off")
	modules := t.TempDir()
	t.Setenv("GOMODCACHE", modules)
	t.Cleanup(func() { setMode(t, modules, 0o755, 0o644) }) // so that it can be removed

	dir, err := downloadSource(t.Context(), "go", version)
	must(t, err)
	if !strings.HasPrefix(dir, modules) {
		t.Errorf("downloaded to %s, want a directory in %s", dir, modules)
	}
	t.Setenv(SourceVariable, dir)
	if _, err := Build(t.Context(), BuildOptions{}); err != nil {
		t.Error(err)
	}

	if _, err := downloadSource(t.Context(), "go", "v0.2.0"); err == nil || !strings.Contains(err.Error(), "v0.2.0") {
		t.Errorf("err = %v, want one that names the version that does not exist", err)
	}
}

// serveModule lays the module in source out as a module proxy does, and returns
// the directory.
func serveModule(t *testing.T, source, version string) string {
	t.Helper()
	proxy := t.TempDir()
	base := filepath.Join(proxy, filepath.FromSlash(programsModule), "@v", version)
	must(t, os.MkdirAll(filepath.Dir(base), 0o755))
	goMod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	must(t, err)
	for ending, content := range map[string]string{".mod": string(goMod), ".info": `{"Version":"` + version + `"}`} {
		must(t, os.WriteFile(base+ending, []byte(content), 0o644))
	}
	archive, err := os.Create(base + ".zip")
	must(t, err)
	defer archive.Close()
	writer := zip.NewWriter(archive)
	for _, name := range []string{"go.mod", "cmd/servers/main.go", "cmd/clients/main.go", "cmd/kwok/main.go"} {
		content, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(name)))
		must(t, err)
		file, err := writer.Create(programsModule + "@" + version + "/" + name)
		must(t, err)
		if _, err := file.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	must(t, writer.Close())
	return proxy
}
