// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"go/ast"
	"go/constant"
	"go/types"

	"golang.org/x/tools/go/ast/inspector"
)

// timed are the functions of package ctrlkit whose outcome has a time or a backoff.
var timed = map[string]bool{
	"RequeueAfter": true, "RequeueImmediately": true, "RequeueWithBackoff": true, "Poll": true, "RequeueWithin": true,
}

// requeues reports whether a function asks for another reconcile at some time, or may do so through
// code that is not in the package.
func (p *program) requeues(function inspector.Cursor) bool {
	for c := range function.Preorder((*ast.CompositeLit)(nil), (*ast.AssignStmt)(nil), (*ast.CallExpr)(nil)) {
		switch n := c.Node().(type) {
		case *ast.CompositeLit:
			if p.requeueLiteral(n) {
				return true
			}
		case *ast.AssignStmt:
			for _, target := range n.Lhs {
				if selector, ok := ast.Unparen(target).(*ast.SelectorExpr); ok && refersTo(p.info.TypeOf(selector.X), resultPath, "Result") {
					return true
				}
			}
		case *ast.CallExpr:
			if p.requeueCall(n) {
				return true
			}
		}
	}
	return false
}

// requeueLiteral reports whether a literal is a result that requeues.
func (p *program) requeueLiteral(literal *ast.CompositeLit) bool {
	if !refersTo(p.info.TypeOf(literal), resultPath, "Result") {
		return false
	}
	found := false
	p.fields(literal, func(field *types.Var, value ast.Expr) {
		found = found || (field.Name() != "Priority" && !isZero(p.info.Types[value].Value))
	})
	return found
}

// isZero reports whether a constant is 0 or false. It is false for what is no constant.
func isZero(v constant.Value) bool {
	if v == nil {
		return false
	}
	switch v.Kind() {
	case constant.Bool:
		return !constant.BoolVal(v)
	case constant.Int, constant.Float:
		return constant.Sign(v) == 0
	}
	return false
}

// requeueCall reports whether a call enqueues the object for a later time, or returns an outcome or
// an action that is made in another package and can do so.
func (p *program) requeueCall(call *ast.CallExpr) bool {
	if p.info.Types[call.Fun].IsType() {
		return false
	}
	f := p.callee(call)
	if f != nil {
		_, here := p.functions[f]
		switch path := pathOf(f); {
		case here:
			return false // it is looked at itself
		case path == rootPath && f.Signature().Recv() == nil:
			return timed[f.Name()]
		case path == handlersPath, path == workqueuePath:
			return f.Name() == "Enqueue" || f.Name() == "EnqueueAfter" || f.Name() == "AddAfter"
		case path == stepPath, p.runsAction(call):
			return false // what is run is in the package, or was made by a call that is found here
		case !ours(path) && takesRequest(f):
			return true // its error may be a time
		}
	}
	for _, result := range resultsOf(p.info.TypeOf(call)) {
		if isResult(result) || isAction(result) {
			return true
		}
	}
	return false
}

// takesRequest reports whether a function is for steps.
func takesRequest(f *types.Func) bool {
	for param := range f.Signature().Params().Variables() {
		if _, ok := isRequest(param.Type()); ok {
			return true
		}
	}
	return false
}

const workqueuePath = "k8s.io/client-go/util/workqueue"

// runsAction reports whether a call runs an action.
func (p *program) runsAction(call *ast.CallExpr) bool {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Run" && isAction(p.info.TypeOf(selector.X))
}

// answersWithTime reports whether a function of the package has a return with a requeue and without
// a failure, itself or from another function of the package.
func (p *program) answersWithTime(f *types.Func, seen map[*types.Func]bool) bool {
	body, ok := p.functions[f]
	if !ok || seen[f] || !returnsOutcome(f.Signature()) {
		return false
	}
	seen[f] = true
	for c, statement := range nodes[*ast.ReturnStmt](body) {
		if of, _ := innermost(c); of != body {
			continue
		}
		switch values := statement.Results; len(values) {
		case 1:
			call, ok := ast.Unparen(values[0]).(*ast.CallExpr)
			if !ok {
				continue
			}
			next := p.callee(call)
			if next != nil && ((pathOf(next) == rootPath && timed[next.Name()]) || p.answersWithTime(next, seen)) {
				return true
			}
		case 2:
			literal, ok := ast.Unparen(values[0]).(*ast.CompositeLit)
			if ok && p.requeueLiteral(literal) && p.info.Types[values[1]].IsNil() {
				return true
			}
		}
	}
	return false
}
