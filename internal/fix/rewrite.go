// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

// A rewriter changes one file, by edits of its text: what they do not touch stays as it is.
type rewriter struct {
	fset     *token.FileSet
	unit     *unit
	source   *source
	from     []string
	managers *managers
	names    map[string]string // the local names of imported packages, by path
	added    []string          // paths to import
	dropped  map[string]string // imports to remove, by path, with their local names
	edits    []edit
	left     []Remark
}

// An edit replaces a range of a file.
type edit struct {
	from, to token.Pos
	text     string
}

func (r *rewriter) replace(from, to token.Pos, text string) {
	r.edits = append(r.edits, edit{from, to, text})
}
func (r *rewriter) insert(at token.Pos, text string) { r.replace(at, at, text) }

func (r *rewriter) leave(at ast.Node, name, instead string) {
	r.left = append(r.left, Remark{r.source.name, r.fset.Position(at.Pos()).Line, name, instead})
}

// rewrite adds to the plan what changes in the file.
func (r *rewriter) rewrite(plan *Plan) error {
	root, _ := inspector.New([]*ast.File{r.source.tree}).Root().FirstChild()
	for c := range root.Preorder((*ast.Ident)(nil), (*ast.FuncDecl)(nil), (*ast.UnaryExpr)(nil), (*ast.StarExpr)(nil)) {
		switch n := c.Node().(type) {
		case *ast.Ident:
			r.ident(c, n)
		case *ast.FuncDecl:
			r.hook(n)
		case *ast.UnaryExpr:
			if n.Op == token.AND && r.isValue(n.X) {
				r.replace(n.Pos(), n.X.Pos(), "")
			}
		case *ast.StarExpr:
			if r.isDereferenced(n) {
				r.replace(n.Pos(), n.X.Pos(), "")
			}
		}
	}
	after, err := r.finish()
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", r.source.name, err)
	}
	plan.Files = append(plan.Files, File{r.source.name, r.source.text, after})
	plan.Left = append(plan.Left, r.left...)
	return nil
}

// ident rewrites the use of a name: of the original library, or of what its generator wrote.
func (r *rewriter) ident(c inspector.Cursor, ident *ast.Ident) {
	object := r.unit.info.Uses[ident]
	if object == nil {
		return
	}
	if pkg, ok := object.(*types.PkgName); ok {
		if selector, ok := c.Parent().Node().(*ast.SelectorExpr); ok && (r.isOriginal(pkg.Imported().Path()) || pkg.Imported().Path() == Module) {
			r.original(c.Parent(), selector, pkg.Imported().Path() == Module)
		}
		return
	}
	if object.Pkg() == nil {
		return
	}
	expr, outer := ast.Expr(ident), c
	if selector, ok := c.Parent().Node().(*ast.SelectorExpr); ok && selector.Sel == ident {
		if _, isPackage := r.packageOf(selector); isPackage {
			expr, outer = selector, c.Parent()
		}
	}
	switch name := fullName(object); {
	case r.managers.root[name] != "":
		r.replace(expr.Pos(), expr.End(), r.importOf(Module, "ctrlkit", expr.Pos())+"."+r.managers.root[name])
	case r.managers.local[name] != "":
		r.replace(ident.Pos(), ident.End(), r.managers.local[name])
	case r.managers.pointers[name]:
		r.pointer(outer, expr)
	}
}

// fullName returns the name of something that is declared in a package, or of a method, with the
// path of the package.
func fullName(object types.Object) string {
	name := object.Pkg().Path() + "."
	if f, ok := object.(*types.Func); ok {
		if receiver := f.Signature().Recv(); receiver != nil {
			return name + typeName(receiver.Type()) + "." + f.Name()
		}
	}
	if object.Parent() != object.Pkg().Scope() {
		return "" // a local name
	}
	return name + object.Name()
}

func typeName(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

func (r *rewriter) isOriginal(path string) bool { return slices.Contains(r.from, path) }

// packageOf returns the package that a selector selects from.
func (r *rewriter) packageOf(selector *ast.SelectorExpr) (*types.PkgName, bool) {
	ident, ok := selector.X.(*ast.Ident)
	if !ok {
		return nil, false
	}
	pkg, ok := r.unit.info.Uses[ident].(*types.PkgName)
	return pkg, ok
}

// pointer makes the type of a generated manager or of its states a pointer to it, where a variable
// has it.
func (r *rewriter) pointer(c inspector.Cursor, expr ast.Expr) {
	switch c.Parent().Node().(type) {
	case *ast.StarExpr:
	case *ast.Field, *ast.ValueSpec, *ast.ArrayType, *ast.MapType, *ast.ChanType:
		r.insert(expr.Pos(), "*")
	default:
		r.leave(expr, r.text(expr), "its New function returns a pointer now, with the same methods")
	}
}

// isValue reports whether an expression has a type of which New functions return pointers now.
func (r *rewriter) isValue(expr ast.Expr) bool {
	if _, ok := expr.(*ast.CompositeLit); ok {
		return false
	}
	return r.isNamed(r.unit.info.Types[expr].Type) || r.isNamedVariable(expr)
}

func (r *rewriter) isNamedVariable(expr ast.Expr) bool {
	ident, ok := expr.(*ast.Ident)
	if !ok {
		return false
	}
	object := r.unit.info.Uses[ident]
	return object != nil && r.isNamed(object.Type())
}

func (r *rewriter) isNamed(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && r.managers.pointers[fullName(named.Obj())]
}

// isDereferenced reports whether an expression is the value that a pointer to such a type has.
func (r *rewriter) isDereferenced(star *ast.StarExpr) bool {
	of := r.unit.info.Types[star.X]
	p, ok := of.Type.(*types.Pointer)
	return ok && of.IsValue() && r.isNamed(p.Elem())
}

// hook leaves hooks that read the states of an action.
func (r *rewriter) hook(f *ast.FuncDecl) {
	if f.Recv == nil || f.Name.Name != "PreRun" || f.Body == nil || len(f.Type.Params.List) == 0 {
		return
	}
	last := f.Type.Params.List[len(f.Type.Params.List)-1]
	if _, ok := last.Type.(*ast.MapType); !ok || len(last.Names) == 0 {
		return
	}
	states := r.unit.info.Defs[last.Names[len(last.Names)-1]]
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && states != nil && r.unit.info.Uses[ident] == states {
			r.leave(ident, "PreRun", "it receives no states: write a ctrlkit.Hook, which has them in ctrlkit.StateFromContext")
			return false
		}
		return true
	})
}

func (r *rewriter) text(n ast.Node) string {
	return string(r.source.text[r.offset(n.Pos()):r.offset(n.End())])
}

func (r *rewriter) offset(p token.Pos) int { return r.fset.Position(p).Offset }
