// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// original rewrites the use of a name of the original library. If its import is moved already, names
// that both libraries have stay as they are.
func (r *rewriter) original(c inspector.Cursor, selector *ast.SelectorExpr, moved bool) {
	name := selector.Sel.Name
	kind, _ := c.ParentEdge()
	switch parent := c.Parent().Node().(type) {
	case *ast.BinaryExpr:
		if name == "ErrExit" {
			r.comparison(parent, selector)
			return
		}
	case *ast.CaseClause:
		if name == "ErrExit" {
			r.leave(selector, r.text(selector), "a case with errors.Is: an error can be wrapped")
		}
	case *ast.CallExpr:
		if moved && name == "Nop" && kind == edge.CallExpr_Fun || moved && name == "Retry" && !r.counts(parent) {
			return
		}
		if kind == edge.CallExpr_Fun && called[name] != "" {
			if !r.call(parent, selector) {
				r.leave(selector, r.text(selector), called[name])
			}
			return
		}
		if kind == edge.CallExpr_Fun && r.statement(c.Parent(), parent, selector) {
			return
		}
	}
	pkg := r.importOf(Module, "ctrlkit", selector.Pos())
	switch {
	case name == "Nop":
		r.replace(selector.Pos(), selector.End(), pkg+".Nop()")
	case moved && (name == renamed[name] || name == "RequeueImmediately"):
	case renamed[name] != "":
		r.replace(selector.Pos(), selector.End(), pkg+"."+renamed[name])
	case called[name] != "":
		r.leave(selector, r.text(selector), called[name])
	case left[name] != "":
		r.leave(selector, r.text(selector), left[name])
	case !moved:
		r.leave(selector, r.text(selector), "there is no such name in "+Module)
	}
}

// comparison rewrites err == ctrlkit.ErrExit, because the error of an action is wrapped.
func (r *rewriter) comparison(b *ast.BinaryExpr, exit *ast.SelectorExpr) {
	if b.Y != exit || b.Op != token.EQL && b.Op != token.NEQ {
		r.leave(exit, r.text(exit), "errors.Is(err, ctrlkit.ErrExit): an error can be wrapped")
		return
	}
	not := ""
	if b.Op == token.NEQ {
		not = "!"
	}
	r.insert(b.Pos(), not+r.importOf("errors", "errors", b.Pos())+".Is(")
	r.replace(b.X.End(), b.End(), ", "+r.importOf(Module, "ctrlkit", b.Pos())+".ErrExit)")
}

// call rewrites a call that changes more than its name, and reports whether it can.
func (r *rewriter) call(call *ast.CallExpr, fun *ast.SelectorExpr) bool {
	args := call.Args
	pkg := r.importOf(Module, "ctrlkit", call.Pos())
	switch name := fun.Sel.Name; {
	case call.Ellipsis.IsValid():
		return false
	case name == "OptimizeWorkflow" && len(args) == 1 && !r.hasComment(call.Pos(), args[0].Pos()) && !r.hasComment(args[0].End(), call.End()):
		r.replace(call.Pos(), args[0].Pos(), "")
		r.replace(args[0].End(), call.End(), "")
	case name == "Parallel" && len(args) == 1:
		r.replace(fun.Pos(), fun.End(), pkg+".ParallelJoin")
	case name == "ValidateOwnership" && len(args) == 2:
		r.replace(fun.Pos(), fun.End(), r.importOf("k8s.io/apimachinery/pkg/apis/meta/v1", "metav1", call.Pos())+".IsControlledBy")
	case name == "Retry" && len(args) == 2:
		r.replace(fun.Pos(), fun.End(), pkg+".Retry")
		r.insert(args[0].Pos(), r.backoff(call)+"{Steps: ")
		r.insert(args[0].End(), "}")
	case name == "RetryInterval" && len(args) == 3:
		r.replace(fun.Pos(), fun.End(), pkg+".Retry")
		r.insert(args[0].Pos(), r.backoff(call)+"{Steps: ")
		r.insert(args[1].Pos(), "Duration: ")
		r.insert(args[1].End(), "}")
	default:
		return false
	}
	return true
}

func (r *rewriter) backoff(call *ast.CallExpr) string {
	return r.importOf("k8s.io/apimachinery/pkg/util/wait", "wait", call.Pos()) + ".Backoff"
}
