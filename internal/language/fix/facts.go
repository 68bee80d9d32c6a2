// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"
)

// facts are what is known of the expressions in a package.
type facts struct {
	info     *types.Info
	managers *managers
}

// packageOf returns the package that a selector selects from.
func (f *facts) packageOf(selector *ast.SelectorExpr) (*types.PkgName, bool) {
	ident, ok := selector.X.(*ast.Ident)
	if !ok {
		return nil, false
	}
	pkg, ok := f.info.Uses[ident].(*types.PkgName)
	return pkg, ok
}

// isValue reports whether an expression has a type of which New functions return pointers now.
func (f *facts) isValue(expr ast.Expr) bool {
	if _, ok := expr.(*ast.CompositeLit); ok {
		return false
	}
	return f.isNamed(f.info.TypeOf(expr))
}

func (f *facts) isNamed(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && f.managers.pointers[fullName(named.Obj())]
}

// isDereferenced reports whether an expression is the value that a pointer to such a type has.
func (f *facts) isDereferenced(star *ast.StarExpr) bool {
	of := f.info.Types[star.X]
	p, ok := of.Type.(*types.Pointer)
	return ok && of.IsValue() && f.isNamed(p.Elem())
}

// counts reports whether the first argument of a call of Retry is a number.
func (f *facts) counts(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	t := f.info.TypeOf(call.Args[0])
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}

// isFailure reports whether a return statement stands in the body of: if err != nil
func (f *facts) isFailure(c inspector.Cursor, s *ast.ReturnStmt, err *ast.Ident) bool {
	branch, ok := c.Parent().Parent().Node().(*ast.IfStmt)
	if !ok || c.Parent().Node() != branch.Body {
		return false
	}
	condition, ok := branch.Cond.(*ast.BinaryExpr)
	if !ok || condition.Op != token.NEQ || !f.isNil(condition.Y) {
		return false
	}
	tested, ok := condition.X.(*ast.Ident)
	object := f.info.Uses[err]
	if !ok || f.info.Uses[tested] != object {
		return false
	}
	for _, before := range branch.Body.List {
		if before != s && f.assigns(before, object) {
			return false
		}
	}
	return true
}

// assigns reports whether a variable can get another value in a statement.
func (f *facts) assigns(s ast.Stmt, variable types.Object) bool {
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				ident, ok := left.(*ast.Ident)
				found = found || ok && f.info.Uses[ident] == variable
			}
		case *ast.UnaryExpr:
			ident, ok := n.X.(*ast.Ident)
			found = found || ok && n.Op == token.AND && f.info.Uses[ident] == variable
		}
		return !found
	})
	return found
}

func (f *facts) isVariable(ident *ast.Ident) bool {
	_, ok := f.info.Uses[ident].(*types.Var)
	return ok
}

func (f *facts) isNil(expr ast.Expr) bool {
	ident, ok := expr.(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = f.info.Uses[ident].(*types.Nil)
	return ok
}
