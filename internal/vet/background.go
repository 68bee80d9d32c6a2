// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// backgroundAnalyzer reports context.Background and context.TODO as the context of a request to
// the API server, of a wait or of a workflow, in a function that has a context.
var backgroundAnalyzer = newAnalyzer("background", runBackground,
	"report context.Background where a function has a context\n\n"+
		"A request with another context does not end with the reconcile, and has none of its deadline, logger and journal.")

func runBackground(pass *analysis.Pass) (any, error) {
	b := &background{newReporter(pass), programOf(pass), map[*types.Func]bool{}}
	for c, call := range nodes[*ast.CallExpr](b.program.files...) {
		if f := b.program.callee(call); isObject(f, "context", "Background") || isObject(f, "context", "TODO") {
			b.check(c, call)
		}
	}
	return nil, nil
}

type background struct {
	*reporter

	program *program
	// visiting are the functions that are being looked at, against recursion.
	visiting map[*types.Func]bool
}

// check reports a new context, if it is used for a request or a wait.
func (b *background) check(at inspector.Cursor, call *ast.CallExpr) {
	f, ok := innermost(at)
	if !ok {
		return
	}
	function, _ := b.program.signature(f.Node())
	ctx, has := b.context(function)
	if !has || deferred(at, f) || b.exempted(at, f, ctx) {
		return
	}
	outer, ok := at.Parent().Node().(*ast.CallExpr)
	if !ok {
		return
	}
	target := b.target(at, f, outer)
	if target == "" {
		return
	}
	text := types.ExprString(call)
	if ctx == nil {
		b.report(call, fmt.Sprintf("%s is the context of %s in a function that has one: name the parameter and pass it on, so that the call ends with it", text, target))
		return
	}
	message := fmt.Sprintf("%s is the context of %s: pass %s on, so that the call ends with it, or context.WithoutCancel(%[3]s) if it must not", text, target, ctx.Name)
	if made := pathOf(b.program.callee(outer)) == "context"; made || !b.program.inScope(ctx, call) { // whether it must end with ctx is open
		b.report(call, message)
		return
	}
	b.report(call, message, replace("Pass "+ctx.Name+" on", call, ctx.Name))
}

// context returns the name of a function's context, nil if it has none, and whether there is one.
func (b *background) context(function *ast.FuncType) (ctx *ast.Ident, ok bool) {
	b.program.parameters(function, func(name *ast.Ident, t types.Type) {
		if isContext(t) && !ok {
			ctx, ok = name, true
		}
	})
	return ctx, ok
}

// exempted reports whether a function looks at the end of its context before a node: what comes
// after that is meant to run without it.
func (b *background) exempted(at, f inspector.Cursor, ctx *ast.Ident) bool {
	if ctx == nil {
		return false
	}
	parameter := b.program.info.Defs[ctx]
	for _, selector := range nodes[*ast.SelectorExpr](f) {
		name, ok := selector.X.(*ast.Ident)
		if ok && b.program.info.Uses[name] == parameter && (selector.Sel.Name == "Done" || selector.Sel.Name == "Err") && selector.Pos() < at.Node().Pos() {
			return true
		}
	}
	return false
}

// target returns the function that makes a request or waits with a context that is an argument of a
// call: of the call itself, or of one with a context that is made from it. It is empty if there is
// none.
func (b *background) target(at, f inspector.Cursor, call *ast.CallExpr) string {
	callee := b.program.callee(call)
	if callee == nil {
		return ""
	}
	if pathOf(callee) != "context" {
		if i := slices.IndexFunc(call.Args, func(e ast.Expr) bool { return e == at.Node() }); i >= 0 && b.requests(callee, i) {
			return types.ExprString(call.Fun)
		}
		return ""
	}
	if callee.Name() == "WithoutCancel" {
		return ""
	}
	assign, ok := at.Parent().Parent().Node().(*ast.AssignStmt) // ctx, cancel := context.WithTimeout(context.Background(), ...)
	if !ok {
		return ""
	}
	made, ok := b.program.info.ObjectOf(nameOf(assign.Lhs[0])).(*types.Var)
	if !ok || len(b.program.values[made]) != 1 {
		return ""
	}
	return b.passedOn(f, made)
}

// passedOn returns the first function in f that makes a request or waits with a context, outside of
// goroutines, deferred calls and other functions.
func (b *background) passedOn(f inspector.Cursor, ctx *types.Var) string {
	for c, call := range nodes[*ast.CallExpr](f) {
		if of, _ := innermost(c); of != f || deferred(c, f) {
			continue
		}
		callee := b.program.callee(call)
		for i, arg := range call.Args {
			if name, ok := ast.Unparen(arg).(*ast.Ident); ok && callee != nil && b.program.info.Uses[name] == ctx && b.requests(callee, i) {
				return types.ExprString(call.Fun)
			}
		}
	}
	return ""
}

// deferred reports whether a call is deferred or runs in a goroutine of its own.
func deferred(c, f inspector.Cursor) bool {
	for statement := range c.Enclosing((*ast.GoStmt)(nil), (*ast.DeferStmt)(nil)) {
		if f.Contains(statement) {
			return true
		}
	}
	return false
}

// requests reports whether a function makes a request to the API server, waits, or runs a workflow
// with its i-th argument as the context: by what it is, or because it passes its context on to one
// that does.
func (b *background) requests(f *types.Func, i int) bool {
	if body, ok := b.program.functions[f]; ok {
		if b.visiting[f] || i >= f.Signature().Params().Len() || !isContext(f.Signature().Params().At(i).Type()) {
			return false
		}
		b.visiting[f] = true
		defer delete(b.visiting, f)
		return b.passedOn(body, f.Signature().Params().At(i)) != ""
	}
	switch path := pathOf(f); {
	case path == clientPath, path == stepPath:
		return true
	case path == "k8s.io/apimachinery/pkg/util/wait":
		return strings.HasPrefix(f.Name(), "Poll") || strings.HasPrefix(f.Name(), "Exponential")
	case path == rootPath || strings.HasPrefix(path, rootPath+"/"):
		return f.Name() == "Run" && f.Signature().Recv() != nil && returnsOutcome(f.Signature())
	}
	return takesOptions(f.Signature())
}

// takesOptions reports whether a function is one of a clientset: it has options of package meta/v1.
func takesOptions(s *types.Signature) bool {
	for parameter := range s.Params().Variables() {
		n := named(parameter.Type())
		if n != nil && pathOf(n.Obj()) == metaPath && strings.HasSuffix(n.Obj().Name(), "Options") {
			return s.Recv() != nil && isContext(s.Params().At(0).Type())
		}
	}
	return false
}
