// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"
	"golang.org/x/tools/go/packages"

	"github.com/ctrlkit/ctrlkit/internal/language/gen"
)

// A goRenamer renames what is generated from a name, and all that uses it: the methods that implement
// an action, and other Go of the module.
type goRenamer struct {
	*workspace
	document    *document // as it was
	dir         directory // as it was
	generated   *goFile
	regenerated string
	names       map[string]string // the new name of what is declared in a line, by FILE:LINE:NAME
	packages    []*packages.Package
	edits       map[string][]textEdit
	seen        map[string]bool // places with an edit
}

// renameGo returns what renames the Go of a document with the text renamed. It is an error if the
// generated file is not up to date: what has which name would not be known.
func (w *workspace) renameGo(ctx context.Context, d *document, dir *directory, renamed string) (*goRenamer, error) {
	before, err := w.generate(ctx, d, dir, d.content)
	if err != nil {
		return nil, err
	}
	after, err := w.generate(ctx, d, dir, renamed)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir.path, before.Name)
	file := w.goFiles.file(path)
	if file == nil || file.content != string(before.Content) {
		return nil, fmt.Errorf("%s is not up to date: run ctrlkit generate first", before.Name)
	}
	g := &goRenamer{
		workspace: w, document: d, dir: *dir, generated: file, regenerated: string(after.Content),
		edits: map[string][]textEdit{}, seen: map[string]bool{},
	}
	g.names, err = renamedNames(path, before.Content, after.Content)
	return g, err
}

// load loads the packages that use the names, which takes seconds. It touches nothing that another
// request does.
func (g *goRenamer) load(ctx context.Context) (err error) {
	config := &packages.Config{Context: ctx, Dir: g.dir.root, Tests: true, Mode: packages.LoadSyntax}
	if g.packages, err = packages.Load(config, g.users()...); err != nil {
		return fmt.Errorf("loading the Go that uses the name: %w", err)
	}
	return nil
}

// errChanged is the answer to a request about a text that has changed before it could be answered.
var errChanged = &jsonrpc2.Error{Code: codeContentModified, Message: "the document or the Go of it has changed in the meantime: rename again"}

// all returns the edits in Go files, by URI.
func (g *goRenamer) all() (map[string][]textEdit, error) {
	path := g.generated.path
	if now, _ := g.find(g.document.path); now != g.document || g.goFiles.file(path) != g.generated {
		return nil, errChanged
	}
	for _, p := range g.packages {
		g.implementations(p)
	}
	for _, p := range g.packages {
		g.uses(p, path)
	}
	g.edits[uriOf(path)] = newText(g.generated.content, g.utf8).replaced(g.regenerated)
	return g.edits, nil
}

// generate returns the Go of a document with another text.
func (w *workspace) generate(ctx context.Context, d *document, dir *directory, content string) (gen.File, error) {
	other := *dir
	other.documents = maps.Clone(dir.documents)
	other.documents[d.path] = newDocument(d.path, d.uri, d.version, newText(content, w.utf8))
	other.sound = nil
	w.analyze(ctx, &other)
	if other.sound == nil {
		if len(other.list) > 0 {
			return gen.File{}, fmt.Errorf("the documents have mistakes, or would have with the new name: %s", other.list[0])
		}
		return gen.File{}, errors.New("the Go packages are not loaded yet: try again")
	}
	files, err := gen.Generate(other.sound)
	if err != nil {
		return gen.File{}, err
	}
	for _, file := range files {
		if file.Source == filepath.Base(d.path) {
			return file, nil
		}
	}
	return gen.File{}, errors.New("nothing is generated from the document")
}

// renamedNames compares the identifiers of a generated file before and after, which has the same form.
func renamedNames(path string, before, after []byte) (map[string]string, error) {
	fset := token.NewFileSet()
	idents := func(content []byte) []*ast.Ident {
		var all []*ast.Ident
		if tree, err := parser.ParseFile(fset, path, content, parser.SkipObjectResolution); err == nil {
			ast.Inspect(tree, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					all = append(all, id)
				}
				return true
			})
		}
		return all
	}
	old, now := idents(before), idents(after)
	if len(old) != len(now) {
		return nil, errors.New("the generated code has another form with the new name: rename by hand")
	}
	names := map[string]string{}
	for i, id := range old {
		if id.Name != now[i].Name {
			names[key(fset.Position(id.Pos()), id.Name)] = now[i].Name
		}
	}
	return names, nil
}

// key names what is declared in a line. The compiler's export data always has lines.
func key(at token.Position, name string) string {
	return at.Filename + ":" + strconv.Itoa(at.Line) + ":" + name
}

// users returns the directories with Go files of the module that import the generated package, and
// that of the package itself.
func (g *goRenamer) users() []string {
	dirs := []string{g.dir.path}
	quoted := []byte(strconv.Quote(g.dir.importPath))
	_ = filepath.WalkDir(g.dir.root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return nil
		case entry.IsDir() && path != g.dir.root && (name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_'):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, quoted) {
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	})
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// implementations adds the methods to the names that implement a method of an interface which is
// renamed.
func (g *goRenamer) implementations(p *packages.Package) {
	var interfaces []*types.Interface
	for _, of := range append(p.Types.Imports(), p.Types) {
		if of.Path() != g.dir.importPath {
			continue
		}
		for _, name := range of.Scope().Names() {
			if t, ok := of.Scope().Lookup(name).Type().Underlying().(*types.Interface); ok {
				interfaces = append(interfaces, t)
			}
		}
	}
	for _, obj := range p.TypesInfo.Defs {
		method, ok := obj.(*types.Func)
		if !ok || method.Signature().Recv() == nil {
			continue
		}
		for _, t := range interfaces {
			for m := range t.Methods() {
				renamed, ok := g.names[key(p.Fset.Position(m.Pos()), m.Name())]
				if ok && m.Name() == method.Name() && implements(method.Signature().Recv().Type(), t) {
					g.names[key(p.Fset.Position(method.Pos()), method.Name())] = renamed
				}
			}
		}
	}
}

func implements(t types.Type, i *types.Interface) bool {
	if _, isPointer := t.(*types.Pointer); !isPointer && !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	return types.Implements(t, i)
}

// uses adds an edit for each identifier of a package that has a new name, outside of the generated
// file.
func (g *goRenamer) uses(p *packages.Package, generated string) {
	for _, found := range []map[*ast.Ident]types.Object{p.TypesInfo.Defs, p.TypesInfo.Uses} {
		for id, obj := range found {
			if obj == nil || obj.Name() != id.Name {
				continue
			}
			renamed, ok := g.names[key(p.Fset.Position(obj.Pos()), id.Name)]
			at := p.Fset.Position(id.Pos())
			file := g.goFiles.file(at.Filename)
			if place := at.String(); !ok || at.Filename == generated || file == nil || g.seen[place] {
				continue
			} else {
				g.seen[place] = true
			}
			t := newText(file.content, g.utf8)
			start := span{t.position(at.Offset), t.position(at.Offset + len(id.Name))}
			g.edits[uriOf(at.Filename)] = append(g.edits[uriOf(at.Filename)], textEdit{start, renamed})
		}
	}
}
