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

// A rewriter changes one file.
type rewriter struct {
	editor
	facts
	unit    *unit
	from    []string
	names   map[string]string // the local names of imported packages, by path
	added   []string          // paths to import
	dropped map[string]string // imports to remove, by path, with their local names
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
	object := r.info.Uses[ident]
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

// hook leaves hooks that read the states of an action:
//
//	PreRun(ctx context.Context, logger logr.Logger, action string, states map[string]runtime.Object)
func (r *rewriter) hook(f *ast.FuncDecl) {
	params := f.Type.Params.List
	if f.Recv == nil || f.Body == nil || f.Name.Name != "PreRun" || len(params) != 4 || len(params[3].Names) != 1 {
		return
	}
	if of, ok := params[3].Type.(*ast.MapType); !ok || r.text(of.Value) != "runtime.Object" {
		return
	}
	states := r.info.Defs[params[3].Names[0]]
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && states != nil && r.info.Uses[ident] == states {
			r.leave(ident, "PreRun", "it receives no states: write a ctrlkit.Hook, which has them in ctrlkit.StateFromContext")
			return false
		}
		return true
	})
}
