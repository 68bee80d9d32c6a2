// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ast/astutil"
)

// importOf returns the local name of a package that the file will import: of the import that it
// has, or of a new one, which has another name than usual if that means something else at pos.
func (r *rewriter) importOf(path, usual string, pos token.Pos) string {
	if r.names[path] != "" {
		return r.names[path]
	}
	name := usual
	if at := r.importSpec(path); at != nil {
		name = cmp.Or(nameOf(at), usual)
	} else if path == Module && r.importOfOriginal() != nil {
		name = cmp.Or(nameOf(r.importOfOriginal()), usual)
	} else {
		if r.isTaken(name, pos) {
			name += "pkg"
		}
		r.added = append(r.added, path)
	}
	r.names[path] = name
	return name
}

// isTaken reports whether a name means something at pos, or anywhere in the file.
func (r *rewriter) isTaken(name string, pos token.Pos) bool {
	if scope := r.unit.types.Scope().Innermost(pos); scope != nil {
		if _, object := scope.LookupParent(name, token.NoPos); object != nil {
			return true
		}
	}
	return slices.ContainsFunc(r.source.tree.Imports, func(spec *ast.ImportSpec) bool { return spec.Name != nil && spec.Name.Name == name })
}

// importSpec returns the import of a path that has a name to use.
func (r *rewriter) importSpec(path string) *ast.ImportSpec {
	for _, spec := range r.source.tree.Imports {
		if pathOf(spec) == path && (spec.Name == nil || spec.Name.Name != "_" && spec.Name.Name != ".") {
			return spec
		}
	}
	return nil
}

func (r *rewriter) importOfOriginal() *ast.ImportSpec {
	for _, path := range r.from {
		if spec := r.importSpec(path); spec != nil {
			return spec
		}
	}
	return nil
}

func pathOf(spec *ast.ImportSpec) string {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return path
}

// finish returns the text of the file after all edits, with its imports.
func (r *rewriter) finish() ([]byte, error) {
	r.imports()
	if len(r.edits) == 0 {
		return r.source.text, nil
	}
	text := r.apply()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, "", text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, added := range r.added {
		astutil.AddNamedImport(fset, tree, r.alias(added), added)
	}
	for dropped, name := range r.dropped {
		astutil.DeleteNamedImport(fset, tree, name, dropped)
	}
	if r.isMoved() && !astutil.UsesImport(tree, Module) {
		astutil.DeleteNamedImport(fset, tree, r.alias(Module), Module)
	}
	var after bytes.Buffer
	if err := format.Node(&after, fset, tree); err != nil {
		return nil, err
	}
	return after.Bytes(), nil
}

// alias returns the name that an import of the file gives a package, and nothing if it is the usual.
func (r *rewriter) alias(imported string) string {
	if name := r.names[imported]; name != path.Base(imported) {
		return name
	}
	return ""
}

// imports rewrites the imports of the original library. A second one of this library is dropped.
func (r *rewriter) imports() {
	ours := r.importSpec(Module) != nil
	for _, spec := range r.source.tree.Imports {
		switch path := pathOf(spec); {
		case isBelow(path, r.from):
			r.leave(spec, path, "there is no such package in "+Module)
		case !r.isOriginal(path):
		case spec.Name != nil && spec.Name.Name == ".":
			r.leave(spec, path, "import it with a name, and run this again")
		case ours:
			r.dropped[path] = nameOf(spec)
			r.insert(spec.Pos(), "") // there is something to do
		default:
			ours = true
			r.replace(spec.Path.Pos(), spec.Path.End(), strconv.Quote(Module))
		}
	}
}

func nameOf(spec *ast.ImportSpec) string {
	if spec.Name == nil {
		return ""
	}
	return spec.Name.Name
}

// isMoved reports whether the import of the original library became the one of this.
func (r *rewriter) isMoved() bool {
	return r.importSpec(Module) == nil && r.importOfOriginal() != nil
}
