// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package merge builds one test binary for the tests of many packages. To link a test binary takes
// seconds of processor time, most of them for the same libraries, and go test links one for each
// package: for a hundred packages, that is most of what their unit tests take.
//
// No file changes for it. An overlay of the go command shows it the test files of a package as
// files of the package itself, and an external test package as a package in a directory below; each
// gets a file that registers its tests. The binary runs those of one package at a time, in the
// directory of that package, with the flags and the names of go test.
package merge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge/registry"
)

// A Package is what go list says of one.
type Package struct {
	ImportPath, Dir, Name                          string
	GoFiles, Imports                               []string
	TestGoFiles, TestImports                       []string
	XTestGoFiles, XTestImports, XTestEmbedPatterns []string
}

// List returns the packages of the patterns.
func List(ctx context.Context, patterns ...string) ([]*Package, error) {
	const fields = "ImportPath,Dir,Name,GoFiles,Imports,TestGoFiles,TestImports,XTestGoFiles,XTestImports,XTestEmbedPatterns"
	return GoList[*Package](ctx, append([]string{"-json=" + fields}, patterns...)...)
}

// GoList returns what go list prints as JSON, for arguments that ask for that.
func GoList[T any](ctx context.Context, args ...string) ([]T, error) {
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	var all []T
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var p T
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// Options say what to build.
type Options struct {
	Module string   // the import path below which all packages are
	Root   string   // its directory
	Dir    string   // where the binary and what it is made of go
	Flags  []string // of go test -c, beside -o and -overlay
}

// A Binary has the tests of many packages.
type Binary struct {
	Spent time.Duration // the processor time of building it

	path string
	dirs map[string]string // of the packages, by import path
}

// linksDir has a link to the binary for each package.
const linksDir = "as"

// Build builds the tests of the packages for which wanted is true. All are the packages that these
// may import. A package whose tests cannot be part of the binary is not in it; see Binary.Has. The
// error has what the compiler says, with the names of the real files.
func Build(ctx context.Context, o Options, all []*Package, wanted func(*Package) bool) (*Binary, error) {
	merged := mergeable(all, wanted)
	files, err := generate(o, merged)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(filepath.Join(o.Dir, linksDir)); err != nil { // they would keep former binaries
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	overlay := filepath.Join(o.Dir, "overlay.json")
	if err := writeOverlay(overlay, o.Dir, files); err != nil {
		return nil, err
	}
	b := &Binary{path: filepath.Join(o.Dir, "all.test"), dirs: map[string]string{}}
	for _, p := range merged {
		b.dirs[p.ImportPath] = p.Dir
	}
	args := append([]string{"test", "-c", "-o", b.path, "-overlay", overlay}, o.Flags...)
	command := exec.CommandContext(ctx, "go", append(args, path.Join(o.Module, mainDir))...)
	command.Dir = o.Root
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the tests do not compile: %w\n%s", err, output)
	}
	b.Spent = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return b, nil
}

// Has reports whether the binary has the tests of a package.
func (b *Binary) Has(importPath string) bool { return b.dirs[importPath] != "" }

// Command returns the call that runs the tests of a package, in its directory. The program has the
// name that go test gives it.
func (b *Binary) Command(ctx context.Context, importPath string, args ...string) (*exec.Cmd, error) {
	dir := filepath.Join(filepath.Dir(b.path), linksDir, strings.ReplaceAll(importPath, "/", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, path.Base(importPath)+".test")
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.Link(b.path, name); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = b.dirs[importPath]
	command.Env = append(os.Environ(), registry.Variable+"="+importPath, "PWD="+command.Dir)
	return command, nil
}

// writeOverlay writes the files, and the overlay that shows them to the go command at their places.
func writeOverlay(name, dir string, files []file) error {
	replace := map[string]string{}
	dir = filepath.Join(dir, "_generated") // which patterns of the go command do not match
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, f := range files {
		if f.content == nil {
			replace[f.shown] = ""
			continue
		}
		name := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(name, f.content, 0o644); err != nil {
			return err
		}
		replace[f.shown] = name
	}
	content, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

// mergeable returns the packages whose tests can be part of one binary. Test files that become
// files of their package may close a cycle of imports that go test never sees, because it compiles
// the tests of one package at a time: then a package of the cycle is left out. Embedding needs the
// real directory.
func mergeable(all []*Package, wanted func(*Package) bool) []*Package {
	g := graph{all: map[string]*Package{}, merged: map[string]bool{}}
	var merged []*Package
	for _, p := range all {
		g.all[p.ImportPath] = p
		if wanted(p) && len(p.XTestEmbedPatterns) == 0 && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			g.merged[p.ImportPath] = true
			merged = append(merged, p)
		}
	}
	return slices.DeleteFunc(merged, func(p *Package) bool {
		if !g.lead(p.TestImports, p.ImportPath, map[string]bool{}) {
			return false
		}
		delete(g.merged, p.ImportPath)
		return true
	})
}

// A graph has the packages that may import each other, and says which of them include their tests.
type graph struct {
	all    map[string]*Package
	merged map[string]bool
}

// lead reports whether imports lead to a package, directly or by those of others.
func (g graph) lead(imports []string, to string, seen map[string]bool) bool {
	for _, name := range imports {
		p := g.all[name]
		if name == to {
			return true
		} else if p == nil || seen[name] {
			continue
		}
		seen[name] = true
		next := p.Imports
		if g.merged[name] {
			next = slices.Concat(next, p.TestImports)
		}
		if g.lead(next, to, seen) {
			return true
		}
	}
	return false
}
