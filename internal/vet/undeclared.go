// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// undeclaredAnalyzer reports conditions that are set on a condition.Set and that nothing in the
// package declares. It is silent where other packages may declare them.
var undeclaredAnalyzer = newAnalyzer("undeclared", runUndeclared,
	"report conditions that are set and not declared\n\n"+
		"Only declared conditions can be set: to set another one panics.")

func runUndeclared(pass *analysis.Pass) (any, error) {
	u := &undeclared{reporter: newReporter(pass), program: programOf(pass), declared: map[string]token.Pos{}, engines: map[string]bool{}}
	u.collect()
	if u.opaque {
		return nil, nil
	}
	for c, call := range nodes[*ast.CallExpr](u.program.files...) {
		u.mark(c, call)
	}
	return nil, nil
}

type undeclared struct {
	*reporter

	program *program
	// declared are the types of the conditions, and where.
	declared map[string]token.Pos
	// engines are the types of the objects for which the package makes an engine.
	engines map[string]bool
	// sets says that the package makes sets of conditions itself.
	sets bool
	// opaque says that there are declarations of which the package does not show the types.
	opaque bool
}

// computed are the conditions that are never declared.
var computed = []string{"Ready", "Reconciling", "Stalled", "Paused"}

func (u *undeclared) collect() {
	p := u.program
	for c := range p.preorder((*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)) {
		switch n := c.Node().(type) {
		case *ast.CompositeLit:
			if isNamed(p.info.TypeOf(n), conditionPath, "Declaration") {
				u.literal(n)
			}
		case *ast.CallExpr:
			u.call(n)
		}
	}
}

func (u *undeclared) literal(n *ast.CompositeLit) {
	found := false
	u.program.fields(n, func(field *types.Var, value ast.Expr) {
		if field.Name() == "Type" {
			found = true
			u.declare(value)
		}
	})
	u.opaque = u.opaque || !found
}

// declare notes a declared type.
func (u *undeclared) declare(e ast.Expr) {
	name, ok := u.constant(e)
	if !ok {
		u.opaque = true
		return
	}
	u.declared[name] = e.Pos()
}

func (u *undeclared) constant(e ast.Expr) (string, bool) {
	value := u.program.info.Types[e].Value
	if value == nil || value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(value), true
}

func (u *undeclared) call(call *ast.CallExpr) {
	p := u.program
	f, arguments := p.callee(call), p.typeArguments(call)
	_, here := p.functions[f]
	switch {
	case isObject(f, applyPath, "Condition") && len(call.Args) == 1:
		u.declare(call.Args[0])
	case isObject(f, handlersPath, "Status") && len(call.Args) > 1:
		u.declare(call.Args[1])
	case isObject(f, conditionPath, "NewSet"):
		u.sets = true
	case pathOf(f) == stepPath && slices.Contains(makers, f.Name()) && len(arguments) == 1, isObject(f, handlersPath, "Steps") && len(arguments) == 1:
		u.engines[arguments[0].String()] = true
		u.steps(call)
	case !here && u.declares(p.info.TypeOf(call)):
		u.opaque = true
	}
}

// declares reports whether a call returns declarations, or a step of another module, which has some.
func (u *undeclared) declares(t types.Type) bool {
	if slice, ok := types.Unalias(t).(*types.Slice); ok {
		t = slice.Elem()
	}
	return isNamed(t, conditionPath, "Declaration")
}

// steps looks for steps that are made elsewhere. Those of this module have conditions whose names are
// exported there, except for references, which are named by their options.
func (u *undeclared) steps(call *ast.CallExpr) {
	if call.Ellipsis.IsValid() {
		u.opaque = true
		return
	}
	for _, arg := range call.Args {
		if isNamed(u.program.info.TypeOf(arg), stepPath, "Step") && !shows(u.program, arg, false) {
			u.opaque = true
			return
		}
	}
}

// mark checks a call that sets a condition.
func (u *undeclared) mark(at inspector.Cursor, call *ast.CallExpr) {
	f := u.program.callee(call)
	if f == nil || pathOf(f) != conditionPath || f.Signature().Recv() == nil || len(call.Args) < 3 ||
		!slices.Contains([]string{"MarkHealthy", "MarkUnhealthy", "MarkUnknown"}, f.Name()) || !u.knows(at) {
		return
	}
	name, ok := u.constant(call.Args[0])
	if !ok || u.declared[name].IsValid() || u.ofLibrary(call.Args[0]) {
		return
	}
	if slices.Contains(computed, name) {
		u.report(call.Args[0], fmt.Sprintf("condition %q is computed from the others and can't be set: declare a condition of your own, and set that", name))
		return
	}
	var all []string
	for declared := range u.declared {
		all = append(all, declared)
	}
	slices.Sort(all)
	hint := "nothing is declared"
	if len(all) > 0 {
		hint = "declared: " + strings.Join(all, ", ")
	}
	u.report(call.Args[0], fmt.Sprintf("condition %q is set and not declared, which panics: declare it in Conditions of the step (%s)", name, hint))
}

// knows reports whether the package shows all declarations of the set that is used at a node.
func (u *undeclared) knows(at inspector.Cursor) bool {
	if u.sets {
		return true
	}
	_, object, ok := u.program.requestAt(at)
	return ok && u.engines[object.String()]
}

// ofLibrary reports whether a condition is one that a step of this module declares.
func (u *undeclared) ofLibrary(e ast.Expr) bool {
	name := nameOf(e)
	if name == nil {
		return false
	}
	path := pathOf(u.program.info.Uses[name])
	return ours(path) && path != conditionPath && path != u.program.pkg.Path()
}
