// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"

	dslast "github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
)

// A goPlace is an identifier in a Go file.
type goPlace struct {
	file *goFile
	name *ast.Ident
}

// goPlaces returns where the Go of a directory declares what a name of a document stands for: the
// generated code, and the methods that implement an action, which come first.
func (w *workspace) goPlaces(d *document, o occurrence) []goPlace {
	var written, generated []goPlace
	var implementers []string
	if o.role == roleAction {
		implementers = w.goFiles.implementers(filepath.Dir(d.path), o.decl)
	}
	for _, f := range w.goFiles.in(filepath.Dir(d.path)) {
		switch f.document {
		case "":
			f.methods(func(receiver string, method *ast.FuncDecl) {
				if method.Name.Name == o.name && slices.Contains(implementers, receiver) {
					written = append(written, goPlace{f, method.Name})
				}
			})
		case filepath.Base(d.path):
			for _, name := range f.generatedNames(o) {
				generated = append(generated, goPlace{f, name})
			}
		}
	}
	return append(written, generated...)
}

// generatedNames returns the identifiers that a generated file declares for a name.
func (f *goFile) generatedNames(o occurrence) []*ast.Ident {
	var names []*ast.Ident
	if o.decl == nil {
		return nil
	}
	manager := o.decl.Name.Text
	f.methods(func(receiver string, method *ast.FuncDecl) {
		switch {
		case o.role == roleAction && receiver == manager && method.Name.Name == o.name,
			o.role == roleState && receiver == manager+"State" && method.Name.Name == "Get"+capitalized(o.name):
			names = append(names, method.Name)
		}
	})
	if o.role == roleManager {
		for _, decl := range f.tree.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, spec := range g.Specs {
					if t := spec.(*ast.TypeSpec); t.Name.Name == manager {
						names = append(names, t.Name)
					}
				}
			}
		}
	}
	return names
}

// implementers returns the types of a directory that implement most of the actions of a manager,
// sorted: a new action is not implemented yet.
func (g goFiles) implementers(dir string, decl *dslast.Decl) []string {
	actions := map[string]bool{}
	for a := range dslast.All[*dslast.Action](decl) {
		actions[a.Name.Text] = true
	}
	methods := map[string]int{}
	for _, f := range g.in(dir) {
		if f.document == "" && !strings.HasSuffix(f.path, "_test.go") {
			f.methods(func(receiver string, method *ast.FuncDecl) {
				if actions[method.Name.Name] && takesContext(method) {
					methods[receiver]++
				}
			})
		}
	}
	most := slices.Max(append(slices.Collect(maps.Values(methods)), 1))
	return slices.DeleteFunc(slices.Sorted(maps.Keys(methods)), func(t string) bool { return methods[t] < most })
}

// takesContext reports whether a method may implement an action, going by its parameters: it has
// more than the method of the manager, which has none.
func takesContext(method *ast.FuncDecl) bool {
	return len(method.Type.Params.List) >= 2 || len(method.Type.Params.List) == 1 && len(method.Type.Params.List[0].Names) > 1
}

// behind returns the name of a document that an identifier of a Go file stands for: a method that
// implements an action, or what the generated code declares.
func (w *workspace) behind(dir *directory, f *goFile, offset int) (*document, occurrence, bool) {
	id := f.identAt(offset)
	if id == nil {
		return nil, occurrence{}, false
	}
	for _, path := range slices.Sorted(maps.Keys(dir.documents)) {
		d := dir.documents[path]
		for _, o := range occurrences(d.tree) {
			if o.declares && slices.ContainsFunc(w.goPlaces(d, o), func(p goPlace) bool { return p.name == id }) {
				return d, o, true
			}
		}
	}
	return nil, occurrence{}, false
}

// hasDocuments reports whether a directory has documents.
func hasDocuments(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return check.IsDocument(e.Name()) })
}

func capitalized(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}
