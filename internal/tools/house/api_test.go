// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateAPI = flag.Bool("update-api", false, "rewrite testdata/api, then fail")

// The public API of each package is on record as go doc prints it, without the comments, so that a
// change of it is seen in a review. After an intended change, run
//
//	go test ./internal/tools/house -run TestAPI -update-api
func TestAPI(t *testing.T) {
	inRoot(t)
	recorded := map[string]bool{}
	for _, p := range ownPackages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if isHidden(dir) {
			continue
		}
		got, err := apiOf(p.ImportPath, dir)
		must(t, err)
		name := "ctrlkit.txt"
		if dir != "" {
			name = strings.ReplaceAll(dir, "/", "_") + ".txt"
		}
		recorded[name] = true
		checkAPI(t, filepath.Join("testdata", "api", name), got)
	}
	entries, err := os.ReadDir(filepath.Join("testdata", "api"))
	must(t, err)
	for _, e := range entries {
		if !recorded[e.Name()] {
			t.Errorf("testdata/api/%s is about a package that is not public any more: remove it", e.Name())
		}
	}
}

func checkAPI(t *testing.T, path, got string) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err == nil && string(want) == got {
		return
	}
	if !*updateAPI {
		t.Errorf("the public API is not what %s records; if that is intended, run go test ./internal/tools/house -run TestAPI -update-api (-recorded +is):\n%s",
			path, cmp.Diff(string(want), got))
		return
	}
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(got), 0o644))
	t.Errorf("%s was rewritten: read the difference, and commit it", path)
}

// apiOf returns the exported declarations of the package in dir, in the order of go doc.
func apiOf(importPath, dir string) (string, error) {
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_windows.go") || strings.HasSuffix(name, "_other.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution) // without comments
		if err != nil {
			return "", err
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, importPath)
	if err != nil {
		return "", err
	}
	out := &apiPrinter{fset: fset}
	fmt.Fprintf(&out.text, "package %s // import %q\n", p.Name, importPath)
	out.values(p.Consts)
	out.values(p.Vars)
	out.funcs(p.Funcs)
	for _, typ := range p.Types {
		out.decl(typ.Decl)
		out.values(typ.Consts)
		out.values(typ.Vars)
		out.funcs(typ.Funcs)
		out.funcs(typ.Methods)
	}
	return out.text.String(), nil
}

var apiFormat = printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}

type apiPrinter struct {
	fset *token.FileSet
	text bytes.Buffer
}

func (p *apiPrinter) values(values []*doc.Value) {
	for _, v := range values {
		p.decl(v.Decl)
	}
}

func (p *apiPrinter) funcs(funcs []*doc.Func) {
	for _, f := range funcs {
		f.Decl.Body = nil
		p.decl(f.Decl)
	}
}

func (p *apiPrinter) decl(decl ast.Decl) {
	var text bytes.Buffer
	if err := apiFormat.Fprint(&text, p.fset, decl); err != nil {
		fmt.Fprintln(&p.text, err)
	}
	p.text.WriteByte('\n')
	for line := range strings.Lines(text.String()) {
		if strings.TrimSpace(line) != "" {
			p.text.WriteString(line)
		}
	}
	p.text.WriteByte('\n')
}

// The test above has to be able to fail: what is exported is in the text, what is not is left out.
func TestAPIOf(t *testing.T) {
	inRoot(t)
	dir := t.TempDir()
	src := `package p

// Exported has a comment.
type Exported struct {
	Field  int
	hidden int
}

func (e *Exported) Method(n int) error { return nil }
func (e *Exported) hide() {}

func hidden() {}

const (
	One = 1
	two = 2
)
`
	must(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o644))
	got, err := apiOf("example.com/p", dir)
	must(t, err)
	for _, want := range []string{"Field int", "func (e *Exported) Method(n int) error\n", "One = 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	for _, hidden := range []string{"comment", "hide", "hidden int", "two", "return nil"} {
		if strings.Contains(got, hidden) {
			t.Errorf("%q should not be in:\n%s", hidden, got)
		}
	}
}
