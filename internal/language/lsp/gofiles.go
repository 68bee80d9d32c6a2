// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/gen"
)

// A goFile is the tree of a Go file as it was last saved.
type goFile struct {
	path     string
	changed  time.Time
	content  string
	fset     *token.FileSet
	tree     *ast.File
	document string // the base name of the document that the file is generated from, or ""
	docs     map[int]string
}

// goFiles keeps the trees of Go files by path, so that one is parsed again only if it has changed.
type goFiles map[string]*goFile

// file returns the tree of a Go file, nil if it cannot be read.
func (g goFiles) file(path string) *goFile {
	info, err := os.Stat(path)
	if err != nil {
		delete(g, path)
		return nil
	}
	if known := g[path]; known != nil && known.changed.Equal(info.ModTime()) && len(known.content) == int(info.Size()) {
		return known
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	f := &goFile{path: path, changed: info.ModTime(), content: string(content), fset: token.NewFileSet()}
	f.tree, _ = parser.ParseFile(f.fset, path, content, parser.ParseComments|parser.SkipObjectResolution)
	f.document, _ = gen.SourceOf(content)
	if f.tree == nil {
		return nil
	}
	g[path] = f
	return f
}

// in returns the Go files of a directory, sorted by name.
func (g goFiles) in(dir string) []*goFile {
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	slices.Sort(names)
	var files []*goFile
	for _, name := range names {
		if f := g.file(name); f != nil {
			files = append(files, f)
		}
	}
	return files
}

// location returns the place of an identifier.
func (f *goFile) location(name *ast.Ident, utf8 bool) location {
	return location{uriOf(f.path), f.span(name, utf8)}
}

func (f *goFile) span(name *ast.Ident, utf8 bool) span {
	t := newText(f.content, utf8)
	start := f.fset.Position(name.Pos()).Offset
	return span{t.position(start), t.position(start + len(name.Name))}
}

// identAt returns the identifier at an offset, nil if there is none.
func (f *goFile) identAt(offset int) *ast.Ident {
	var found *ast.Ident
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if start := f.fset.Position(id.Pos()).Offset; start <= offset && offset <= start+len(id.Name) {
				found = id
			}
		}
		return true
	})
	return found
}

// methods calls visit for each method of the file, with the name of its receiver's type.
func (f *goFile) methods(visit func(receiver string, method *ast.FuncDecl)) {
	for _, decl := range f.tree.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || len(fn.Recv.List) == 0 {
			continue
		}
		t := fn.Recv.List[0].Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		if name, ok := t.(*ast.Ident); ok {
			visit(name.Name, fn)
		}
	}
}

// methodsOf returns how many methods of a type the file has.
func (f *goFile) methodsOf(receiver string) int {
	n := 0
	f.methods(func(of string, _ *ast.FuncDecl) {
		if of == receiver {
			n++
		}
	})
	return n
}

// fieldDoc returns the description of a field: of its definition, or of the Go source.
func (g goFiles) fieldDoc(f check.Field) string { return cmp.Or(f.Doc, g.docAt(f.Position)) }

// docAt returns the comment of what is declared at a line of a Go file: a field or a type.
func (g goFiles) docAt(at token.Position) string {
	if !at.IsValid() {
		return ""
	}
	f := g.file(at.Filename)
	if f == nil {
		return ""
	}
	if f.docs == nil {
		f.readDocs()
	}
	return f.docs[at.Line]
}

// readDocs reads the comments of all fields and types, by the lines of their names.
func (f *goFile) readDocs() {
	f.docs = map[int]string{}
	add := func(at token.Pos, texts ...string) {
		f.docs[f.fset.Position(at).Line] = withoutMarkers(strings.Join(texts, ""))
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return false
		case *ast.Field:
			add(n.Type.Pos(), n.Doc.Text(), n.Comment.Text())
			for _, name := range n.Names {
				add(name.Pos(), n.Doc.Text(), n.Comment.Text())
			}
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					add(t.Name.Pos(), n.Doc.Text(), t.Doc.Text())
				}
			}
		}
		return true
	})
}

// withoutMarkers removes the lines of a comment that are for code generators.
func withoutMarkers(doc string) string {
	lines := slices.DeleteFunc(strings.Split(doc, "\n"), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "+")
	})
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
