// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// clockAnalyzer reports decisions by the clock of the machine in a function that has a
// *step.Request: comparisons, differences to a time that was not measured in the same function, and
// calls that compute a time, a duration or a bool from it.
var clockAnalyzer = newAnalyzer("clock", runClock,
	"report decisions by time.Now where a step has the time of its request\n\n"+
		"Steps that look at the clock themselves disagree on what is due, and no test can set the time.")

func runClock(pass *analysis.Pass) (any, error) {
	k := &clock{newReporter(pass), programOf(pass)}
	for c, call := range nodes[*ast.CallExpr](k.program.files...) {
		f := k.program.callee(call)
		switch {
		case isObject(f, "time", "Now") && f.Signature().Recv() == nil, isObject(f, metaPath, "Now"):
			if k.decides(c, nil) {
				k.accuse(c, call, "")
			}
		case isObject(f, "time", "Since"), isObject(f, "time", "Until"):
			if len(call.Args) == 1 && !k.measured(call.Args[0]) && !k.logged(c) {
				k.accuse(c, call, f.Name())
			}
		}
	}
	return nil, nil
}

type clock struct {
	*reporter

	program *program
}

func (k *clock) accuse(at inspector.Cursor, call *ast.CallExpr, function string) {
	name, _, ok := k.program.requestAt(at)
	if !ok {
		return
	}
	text := types.ExprString(call.Fun)
	if name == nil {
		k.report(call, text+" decides by the clock of the machine: name the *step.Request and use its Now, the time of the reconcile, which tests can set")
		return
	}
	now := name.Name + ".Now"
	switch {
	case function == "Since":
		now = fmt.Sprintf("%s.Sub(%s)", now, types.ExprString(call.Args[0]))
	case function == "Until":
		now = fmt.Sprintf("%s.Sub(%s)", operand(call.Args[0]), now)
	case refersTo(k.program.info.TypeOf(call), metaPath, "Time"):
		now = fmt.Sprintf("%s.NewTime(%s)", packageOf(call), now)
	}
	message := fmt.Sprintf("%s decides by the clock of the machine: use %s, the time of the reconcile, on which all steps agree and which tests can set", text, now)
	if !k.program.inScope(name, call) {
		k.report(call, message)
		return
	}
	k.report(call, message, replace("Use the time of the reconcile", call, now))
}

// packageOf returns the name by which the package of a called function is imported.
func packageOf(call *ast.CallExpr) string {
	if selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return types.ExprString(selector.X)
	}
	return "metav1"
}

// operand returns the text of an expression so that a method can be called on it.
func operand(e ast.Expr) string {
	switch ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.CallExpr, *ast.IndexExpr:
		return types.ExprString(ast.Unparen(e))
	}
	return "(" + types.ExprString(e) + ")"
}

// decides reports whether a value of the clock becomes part of a decision.
func (k *clock) decides(value inspector.Cursor, seen []*types.Var) bool {
	parent := value.Parent()
	switch n := parent.Node().(type) {
	case *ast.ParenExpr:
		return k.decides(parent, seen)
	case *ast.UnaryExpr:
		return n.Op == token.AND && k.decides(parent, seen)
	case *ast.BinaryExpr:
		return true
	case *ast.SelectorExpr:
		return k.selected(parent, n, seen)
	case *ast.CallExpr:
		if value.ParentEdgeKind() == edge.CallExpr_Args {
			return k.argument(parent, n, seen)
		}
	case *ast.AssignStmt:
		return value.ParentEdgeKind() == edge.AssignStmt_Rhs && len(n.Lhs) == len(n.Rhs) && k.assigned(value, n.Lhs[value.ParentEdgeIndex()], seen)
	case *ast.ValueSpec:
		return len(n.Names) == len(n.Values) && value.ParentEdgeKind() == edge.ValueSpec_Values && k.assigned(value, n.Names[value.ParentEdgeIndex()], seen)
	}
	return false
}

// selected follows a method that is called on a time, or the Time in a metav1.Time.
func (k *clock) selected(selector inspector.Cursor, n *ast.SelectorExpr, seen []*types.Var) bool {
	call, ok := selector.Parent().Node().(*ast.CallExpr)
	if !ok || call.Fun != n {
		return isTime(k.program.info.TypeOf(n)) && k.decides(selector, seen)
	}
	switch n.Sel.Name {
	case "After", "Before", "Equal", "Compare":
		return true
	case "Sub":
		return len(call.Args) == 1 && !k.measured(call.Args[0]) && !k.logged(selector.Parent())
	}
	return isTime(k.program.info.TypeOf(call)) && k.decides(selector.Parent(), seen) // Add, Truncate, UTC, ...
}

// argument follows a time that is passed to a function.
func (k *clock) argument(call inspector.Cursor, n *ast.CallExpr, seen []*types.Var) bool {
	if f := k.program.callee(n); k.program.info.Types[n.Fun].IsType() || isObject(f, "time", "Since") || isObject(f, "time", "Until") {
		return false // these are looked at themselves
	}
	if selector, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && isTime(k.program.info.TypeOf(selector.X)) {
		return !k.measured(selector.X) && !k.logged(call)
	}
	for _, result := range resultsOf(k.program.info.TypeOf(n)) {
		basic, isBasic := result.(*types.Basic)
		switch {
		case refersTo(result, metaPath, "Time") && isObject(k.program.callee(n), metaPath, "NewTime"):
			return k.decides(call, seen)
		case isTime(result), isNamed(result, "time", "Duration"), isBasic && basic.Kind() == types.Bool:
			return true
		}
	}
	return false
}

// assigned follows a time into a local variable, to all that is done with it.
func (k *clock) assigned(value inspector.Cursor, target ast.Expr, seen []*types.Var) bool {
	name, ok := ast.Unparen(target).(*ast.Ident)
	if !ok {
		return false // it is stored
	}
	v, ok := k.program.info.ObjectOf(name).(*types.Var)
	if !ok || slices.Contains(seen, v) || v.Parent() == k.program.pkg.Scope() {
		return false
	}
	f, ok := innermost(value)
	if !ok {
		return false
	}
	for c, name := range nodes[*ast.Ident](f) {
		if k.program.info.Uses[name] == v && k.decides(c, append(seen, v)) {
			return true
		}
	}
	return false
}

// measured reports whether an expression is a local variable that time.Now was assigned to, or
// time.Now itself: the other end of a stopwatch.
func (k *clock) measured(e ast.Expr) bool {
	isNow := func(value ast.Expr) bool {
		call, ok := ast.Unparen(value).(*ast.CallExpr)
		return ok && isObject(k.program.callee(call), "time", "Now")
	}
	if v := k.program.variable(e); v != nil && !v.IsField() {
		return slices.ContainsFunc(k.program.values[v], isNow)
	}
	return isNow(e)
}

// logged reports whether a duration only becomes part of a statement that is a call, such as one that
// logs or counts it.
func (k *clock) logged(duration inspector.Cursor) bool {
	for c := range duration.Enclosing() {
		switch c.Node().(type) {
		case *ast.ExprStmt:
			return true
		case ast.Stmt, *ast.FuncLit:
			return false
		}
	}
	return false
}
