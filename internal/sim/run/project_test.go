// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// layOut writes the files of a txtar archive into a new directory.
func layOut(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(dir, filepath.FromSlash(file.Name))
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, file.Data, 0o600))
	}
	return dir
}

func TestConventions(t *testing.T) {
	tests := []struct {
		name, files   string
		crds, samples []string
	}{
		{name: "beside the package", files: `
-- outside/config/crd/bases/a.yaml --
-- outside/m/op/config/crd/bases/b.yaml --
-- outside/m/op/config/crd/bases/a.yml --
-- outside/m/op/config/crd/bases/readme.md --
-- outside/m/op/config/crd/kustomization.yaml --
-- outside/m/op/config/samples/s.json --
-- outside/m/config/crd/bases/c.yaml --`,
			crds:    []string{"outside/m/op/config/crd/bases/a.yml", "outside/m/op/config/crd/bases/b.yaml"},
			samples: []string{"outside/m/op/config/samples/s.json"}},
		{name: "at the root of the module", files: `
-- outside/m/op/main.go --
-- outside/m/config/crd/a.yaml --
-- outside/m/config/crd/patches/p.yaml --
-- outside/m/config/samples/kustomization.yaml --
-- outside/m/config/samples/s.yaml --`,
			crds:    []string{"outside/m/config/crd/a.yaml"},
			samples: []string{"outside/m/config/samples/s.yaml"}},
		{name: "bases without files", files: `
-- outside/m/op/config/crd/bases/.keep --
-- outside/m/op/config/crd/a.yaml --`,
			crds: []string{"outside/m/op/config/crd/a.yaml"}},
		{name: "not outside of the module", files: `
-- outside/config/crd/bases/a.yaml --
-- outside/config/samples/a.yaml --
-- outside/m/op/main.go --`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := layOut(t, test.files)
			project := &Project{Dir: filepath.Join(dir, "outside", "m", "op"), ModuleDir: filepath.Join(dir, "outside", "m")}
			crds, err := project.CRDFiles()
			must(t, err)
			samples, err := project.SampleFiles()
			must(t, err)
			if diff := cmp.Diff(test.crds, relativeTo(t, dir, crds)); diff != "" {
				t.Errorf("definitions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.samples, relativeTo(t, dir, samples)); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
		})
	}
}

func relativeTo(t *testing.T, dir string, files []string) []string {
	t.Helper()
	var names []string
	for _, file := range files {
		name, err := filepath.Rel(dir, file)
		must(t, err)
		names = append(names, filepath.ToSlash(name))
	}
	return names
}

const tinyModule = `
-- go.mod --
module example.com/tiny

go 1.24
-- cmd/op/main.go --
package main

func main() {}
-- broken/main.go --
package main

func main() { undefined() }
-- lib/lib.go --
package lib
`

func TestFindProject(t *testing.T) {
	rings.Test(t, "runs the go command")
	dir := layOut(t, tinyModule)
	for _, arg := range []string{filepath.Join(dir, "cmd", "op"), filepath.Join(dir, "cmd", "op", "main.go")} {
		project, err := FindProject(t.Context(), arg)
		must(t, err)
		if project.ImportPath != "example.com/tiny/cmd/op" || project.Name() != "op" || filepath.Base(project.ModuleDir) != filepath.Base(dir) {
			t.Errorf("%s: got %+v", arg, project)
		}
	}
	for arg, want := range map[string]string{
		filepath.Join(dir, "lib"):     "is package lib",
		filepath.Join(dir, "nothing"): "no such file",
		filepath.Join(dir, "cmd"):     "no Go files",
		"example.com/nowhere":         "example.com/nowhere",
		"./internal/...":              "looking for the operator's package",
	} {
		if _, err := FindProject(t.Context(), arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that contains %q", arg, err, want)
		}
	}
}

// The root of a project of kubebuilder's stands for its cmd, also with a package in it.
func TestFindProjectInCmd(t *testing.T) {
	rings.Test(t, "runs the go command")
	const module = `
-- go.mod --
module example.com/tiny

go 1.24
-- cmd/main.go --
package main

func main() {}
`
	for name, files := range map[string]string{"no package": "", "a library": "-- tiny.go --\npackage tiny\n"} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(layOut(t, module+files))
			project, err := FindProject(t.Context(), ".")
			must(t, err)
			if want := "." + string(filepath.Separator) + "cmd"; project.ImportPath != "example.com/tiny/cmd" || project.instead != want {
				t.Errorf("got %+v, want %s", project, want)
			}
			if project, err = FindProject(t.Context(), "./cmd"); err != nil || project.instead != "" {
				t.Errorf("got %+v, %v", project, err)
			}
		})
	}
}

func TestBuild(t *testing.T) {
	rings.Test(t, "runs the go command")
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	must(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := layOut(t, tinyModule)
	var complaints bytes.Buffer

	project, err := FindProject(t.Context(), filepath.Join(dir, "cmd", "op"))
	must(t, err)
	program, err := project.Build(t.Context(), io.Discard, &complaints)
	must(t, err)
	if info, err := os.Stat(program); err != nil || info.Mode()&0o100 == 0 || complaints.Len() > 0 {
		t.Errorf("%s is no program: %v; the compiler says %q", program, err, complaints.String())
	}

	project, err = FindProject(t.Context(), filepath.Join(dir, "broken"))
	must(t, err)
	if _, err := project.Build(t.Context(), io.Discard, &complaints); !errors.Is(err, ErrDoesNotCompile) {
		t.Errorf("got %v, want that it does not compile", err)
	}
	if got := complaints.String(); !strings.Contains(got, "main.go:3:15: undefined: undefined") {
		t.Errorf("the complaints are %q", got)
	}
}

func TestComplaintsNameFilesAsUsersDo(t *testing.T) {
	p := &Project{workDir: "../op/cmd"}
	complaints := "# example.com/x\nx.go:1:2: no\n\t./y.go:3: other\n/abs/z.go:1:1: no\n\tindented\nlast:\n"
	if got, want := p.located(complaints), "# example.com/x\n../op/cmd/x.go:1:2: no\n\t../op/cmd/y.go:3: other\n/abs/z.go:1:1: no\n\tindented\nlast:\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
