// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"go/ast"
	"strings"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// statement rewrites a call of a function that this library has only for what can't be rewritten,
// and reports whether it could.
func (r *rewriter) statement(c inspector.Cursor, call *ast.CallExpr, fun *ast.SelectorExpr) bool {
	if r.hasComment(call.Pos(), call.End()) || call.Ellipsis.IsValid() {
		return false
	}
	kind, _ := c.ParentEdge()
	returned, _ := c.Parent().Node().(*ast.ReturnStmt)
	if returned != nil && len(returned.Results) != 1 {
		returned = nil
	}
	pkg := r.importOf(Module, "ctrlkit", call.Pos())
	switch name := fun.Sel.Name; {
	case name == "ExitIf" && len(call.Args) == 1 && returned != nil:
		r.exitIf(returned, call.Args[0], pkg)
	case name == "NeedsRequeue" && len(call.Args) == 2:
		return r.needsRequeue(call, kind == edge.IfStmt_Cond)
	case name == "RequeueIfErrorAndWrap" && len(call.Args) == 2:
		return r.wrap(c.Parent(), returned, call, pkg)
	default:
		return false
	}
	return true
}

// exitIf writes the branches of: return ctrlkit.ExitIf(condition)
func (r *rewriter) exitIf(s *ast.ReturnStmt, condition ast.Expr, pkg string) {
	open, end := "", ""
	ast.Inspect(condition, func(n ast.Node) bool {
		if _, ok := n.(*ast.CompositeLit); ok {
			open, end = "(", ")" // its brace would begin the body
		}
		return open == ""
	})
	r.replace(s.Pos(), condition.Pos(), "if "+open)
	r.replace(condition.End(), s.End(), end+" {\nreturn "+pkg+".Exit()\n}\nreturn "+pkg+".NoRequeue()")
}

// needsRequeue writes what ctrlkit.NeedsRequeue(result, err) computes, of two variables.
func (r *rewriter) needsRequeue(call *ast.CallExpr, alone bool) bool {
	result, ok := call.Args[0].(*ast.Ident)
	err, also := call.Args[1].(*ast.Ident)
	if !ok || !also || !r.isVariable(result) || !r.isVariable(err) {
		return false
	}
	text := err.Name + " != nil || !" + result.Name + ".IsZero()"
	if !alone {
		text = "(" + text + ")"
	}
	r.replace(call.Pos(), call.End(), text)
	return true
}

// wrap writes what ctrlkit.RequeueIfErrorAndWrap(text, err) does, where err is a variable.
func (r *rewriter) wrap(c inspector.Cursor, s *ast.ReturnStmt, call *ast.CallExpr, pkg string) bool {
	err, ok := call.Args[1].(*ast.Ident)
	if !ok || s == nil || !r.isVariable(err) {
		return false
	}
	text := call.Args[0]
	wrapped := pkg + ".RequeueIfError(" + r.importOf("fmt", "fmt", call.Pos()) + ".Errorf("
	literal, isLiteral := text.(*ast.BasicLit)
	if !isLiteral {
		wrapped += `"%s: %w", `
	}
	r.replace(call.Pos(), text.Pos(), wrapped)
	if isLiteral {
		r.replace(text.Pos(), text.End(), withVerb(literal))
	}
	r.insert(call.End(), ")")
	if !r.isFailure(c, s, err) {
		r.insert(s.Pos(), "if "+err.Name+" != nil {\n")
		r.insert(s.End(), "\n}\nreturn "+pkg+".NoRequeue()")
	}
	return true
}

// withVerb returns a literal as the format of an error that wraps another.
func withVerb(literal *ast.BasicLit) string {
	quote := literal.Value[:1]
	return quote + strings.ReplaceAll(literal.Value[1:len(literal.Value)-1], "%", "%%") + ": %w" + quote
}
