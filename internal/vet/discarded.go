// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// discardedAnalyzer reports calls whose result is an action or an outcome of this module and is
// thrown away: by a statement that consists of the call, by defer or go, or by assignment to the
// blank identifier.
//
// Every type that has the methods of ctrlkit.Action is an action. An outcome is what a function of
// package ctrlkit returns, or an action's Run; assigning the latter to blanks is deliberate and not
// reported. A declaration with a type, such as `var _ ctrlkit.Action = newThing()`, is an assertion
// and not reported either.
//
// Where a function that returns an outcome calls another one of its package, keeps the error, and
// drops a result that has a time for another reconcile, that is reported too. It is not if the
// caller returns a time of its own.
var discardedAnalyzer = newAnalyzer("discarded", runDiscarded,
	"report actions that are never run and outcomes that are never returned\n\n"+
		"A call such as mgr.UpdateStatus() makes an action and does nothing else. If it is not run, as in\n"+
		"\"defer mgr.UpdateStatus()\", the work is silently not done.")

func runDiscarded(pass *analysis.Pass) (any, error) {
	r, p := newReporter(pass), programOf(pass)
	nodes := []ast.Node{(*ast.ExprStmt)(nil), (*ast.DeferStmt)(nil), (*ast.GoStmt)(nil), (*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil)}
	for c := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder(nodes...) { //nolint:forcetypeassert // what inspect.Analyzer documents
		(&checker{reporter: r, program: p, at: c}).statement(c.Node())
	}
	return nil, nil
}

// A checker checks one statement.
type checker struct {
	*reporter

	program *program
	at      inspector.Cursor // the statement
}

// A discard is how a result is thrown away.
type discard int

const (
	byStatement discard = iota
	byDefer
	byGo
	byBlank
)

func (c *checker) statement(n ast.Node) {
	switch n := n.(type) {
	case *ast.ExprStmt:
		c.call(n.X, byStatement, nil)
	case *ast.DeferStmt:
		c.call(n.Call, byDefer, nil)
	case *ast.GoStmt:
		c.call(n.Call, byGo, nil)
	case *ast.AssignStmt:
		c.assignment(n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		if n.Type != nil {
			return
		}
		names := make([]ast.Expr, len(n.Names))
		for i, name := range n.Names {
			names[i] = name
		}
		c.assignment(names, n.Values)
	}
}

func (c *checker) assignment(left, right []ast.Expr) {
	if len(right) == 1 {
		c.call(right[0], byBlank, left)
		return
	}
	for i, value := range right {
		c.call(value, byBlank, left[i:i+1])
	}
}

// call reports expr if it is a call and its result goes nowhere. For an assignment, targets are
// what the results are assigned to.
func (c *checker) call(expr ast.Expr, how discard, targets []ast.Expr) {
	call, ok := ast.Unparen(expr).(*ast.CallExpr)
	if !ok || c.pass.TypesInfo.Types[call.Fun].IsType() { // a conversion makes nothing
		return
	}
	results := resultsOf(c.pass.TypesInfo.TypeOf(call))
	discarded := func(i int) bool { return how != byBlank || (i < len(targets) && isBlank(targets[i])) }
	for i, result := range results {
		if discarded(i) && isAction(result) {
			c.report(call, c.actionMessage(call, how), c.runFix(call, how)...)
			return
		}
	}
	if len(results) == 2 && isResult(results[0]) && discarded(0) && discarded(1) {
		c.outcome(call, how)
	}
	if len(results) == 2 && isResult(results[0]) && discarded(0) {
		c.dropped(call)
	}
	if len(results) == 1 && isError(results[0]) && discarded(0) && c.isOutcome(call) {
		c.report(call, types.ExprString(call.Fun)+" returns an outcome and does nothing by itself: return it", c.returnFix(call, how, "")...)
	}
}

// isOutcome reports whether a call returns an outcome of package ctrlkit as an error.
func (c *checker) isOutcome(call *ast.CallExpr) bool {
	f := c.program.callee(call)
	return f != nil && pathOf(f) == rootPath && f.Signature().Recv() == nil && slices.Contains([]string{"Wait", "Poll", "RequeueWithin", "AsError"}, f.Name())
}

// dropped reports a call of a function of the package that returns times for another reconcile, if
// the caller returns a result without them.
func (c *checker) dropped(call *ast.CallExpr) {
	callee := c.program.callee(call)
	if callee == nil || !c.returnsOutcome() || !c.program.answersWithTime(callee, map[*types.Func]bool{}) {
		return
	}
	if f, ok := innermost(c.at); !ok || c.program.requeues(f) {
		return // it has a time of its own
	}
	c.report(call, fmt.Sprintf("%s returns when to reconcile again (%s), and the result is thrown away: return it with the error, or join it to the result of this function",
		types.ExprString(call.Fun), placeText(c.pass, callee.Pos())))
}

// outcome reports a call that returns an outcome, if it comes from this module.
func (c *checker) outcome(call *ast.CallExpr, how discard) {
	callee := c.program.callee(call)
	if callee == nil {
		return
	}
	receiver := callee.Signature().Recv()
	switch {
	case receiver != nil && callee.Name() == "Run" && how != byBlank && isAction(c.receiverType(call)):
		c.report(call, types.ExprString(call.Fun)+" returns an outcome that is thrown away, errors included: return it, or join the action to the workflow ("+
			"ctrlkit.Finally for what must always run)", c.returnFix(call, how, "")...)
	case receiver == nil && pathOf(callee) == rootPath:
		c.report(call, types.ExprString(call.Fun)+" returns an outcome and does nothing by itself: return it", c.returnFix(call, how, "")...)
	}
}

func (c *checker) receiverType(call *ast.CallExpr) types.Type {
	if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return c.pass.TypesInfo.TypeOf(selector.X)
	}
	return nil
}

func (c *checker) actionMessage(call *ast.CallExpr, how discard) string {
	text := types.ExprString(call.Fun)
	switch how {
	case byDefer:
		return fmt.Sprintf("defer %s(...) makes an action and never runs it: run it after the others with ctrlkit.Finally(workflow, %[1]s(...))", text)
	case byGo:
		return fmt.Sprintf("go %s(...) makes an action and never runs it: run it beside others with ctrlkit.ParallelJoin", text)
	default:
		return fmt.Sprintf("%s(...) makes an action that is never run: make it part of the workflow, or run it with .Run(ctx)", text)
	}
}

// runFix returns the outcome of the action from the function, where that can be done without a
// doubt about the context.
func (c *checker) runFix(call *ast.CallExpr, how discard) []analysis.SuggestedFix {
	ctx := c.contextName()
	if ctx == "" || len(resultsOf(c.pass.TypesInfo.TypeOf(call))) != 1 {
		return nil
	}
	return c.returnFix(call, how, ".Run("+ctx+")")
}

// returnFix puts a return before the call and more after it. It is offered for the last statement
// of a block in a function that returns an outcome, where no statement beside it becomes
// unreachable.
func (c *checker) returnFix(call *ast.CallExpr, how discard, more string) []analysis.SuggestedFix {
	if how != byStatement || !c.endsBlock() || !c.returnsSame(call) {
		return nil
	}
	edits := []analysis.TextEdit{{Pos: call.Pos(), End: call.Pos(), NewText: []byte("return ")}}
	if more != "" {
		edits = append(edits, analysis.TextEdit{Pos: call.End(), End: call.End(), NewText: []byte(more)})
	}
	return []analysis.SuggestedFix{{Message: "Return the outcome", TextEdits: edits}}
}

// endsBlock reports whether the statement is the last of its block.
func (c *checker) endsBlock() bool {
	block, ok := c.at.Parent().Node().(*ast.BlockStmt)
	return ok && block.List[len(block.List)-1] == c.at.Node()
}

// function returns the type and the signature of the innermost function around the statement, nil
// if there is none.
func (c *checker) function() (*ast.FuncType, *types.Signature) {
	f, ok := innermost(c.at)
	if !ok {
		return nil, nil
	}
	return c.program.signature(f.Node())
}

// returnsSame reports whether the function returns what a call does, or what the action that it makes
// does.
func (c *checker) returnsSame(call *ast.CallExpr) bool {
	results := resultsOf(c.pass.TypesInfo.TypeOf(call))
	if len(results) == 1 && isError(results[0]) {
		_, signature := c.function()
		return signature != nil && signature.Results().Len() == 1 && isError(signature.Results().At(0).Type())
	}
	return c.returnsOutcome()
}

func (c *checker) returnsOutcome() bool {
	_, signature := c.function()
	return returnsOutcome(signature)
}

// contextName returns the name of the function's context, empty if it has none that can be used.
func (c *checker) contextName() string {
	found := ""
	if f, _ := c.function(); f != nil {
		c.program.parameters(f, func(name *ast.Ident, t types.Type) {
			if found == "" && name != nil && isContext(t) && c.program.inScope(name, c.at.Node()) {
				found = name.Name
			}
		})
	}
	return found
}

func isBlank(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "_"
}

// isAction reports whether t has the methods of an action. It compares signatures instead of
// looking the interface up: the package that declares it need not be among the imports.
func isAction(t types.Type) bool {
	if t == nil {
		return false
	}
	description, run := method(t, "Description"), method(t, "Run")
	if description == nil || run == nil {
		return false
	}
	return description.Params().Len() == 0 && description.Results().Len() == 1 &&
		types.Identical(description.Results().At(0).Type(), types.Typ[types.String]) &&
		run.Params().Len() == 1 && isContext(run.Params().At(0).Type()) &&
		run.Results().Len() == 2 && isResult(run.Results().At(0).Type()) && isError(run.Results().At(1).Type())
}

func method(t types.Type, name string) *types.Signature {
	f := types.NewMethodSet(t).Lookup(nil, name)
	if f == nil {
		return nil
	}
	signature, _ := f.Type().(*types.Signature)
	return signature
}
