// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// bypassAnalyzer reports the use of another client of the manager in a function that has a
// *step.Request: calls of such a client, and passing it on.
var bypassAnalyzer = newAnalyzer("bypass", runBypass,
	"report clients of the manager that are used where a step has one of its request\n\n"+
		"What is read and written past the client of the request is not recorded: the engine neither waits for it nor guards it.")

func runBypass(pass *analysis.Pass) (any, error) {
	b := &bypass{newReporter(pass), programOf(pass)}
	for c := range b.program.preorder((*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)) {
		switch n := c.Node().(type) {
		case *ast.CallExpr:
			b.call(c, n)
		case *ast.CompositeLit:
			b.program.fields(n, func(_ *types.Var, value ast.Expr) { b.passed(c, value) })
		}
	}
	return nil, nil
}

type bypass struct {
	*reporter

	program *program
}

// call checks the client that a call is made on, and those that it passes on.
func (b *bypass) call(at inspector.Cursor, call *ast.CallExpr) {
	if b.program.info.Types[call.Fun].IsType() {
		return
	}
	if u, ok := b.program.use(call); ok {
		if !u.live && b.program.originOf(u) == originManager {
			b.accuse(at, u.client)
		}
		return
	}
	for _, arg := range call.Args {
		b.passed(at, arg)
	}
}

// passed checks a value that is passed on, or stored.
func (b *bypass) passed(at inspector.Cursor, value ast.Expr) {
	if t := b.program.info.TypeOf(value); isClient(t) && b.program.originOfExpr(value) == originManager {
		b.accuse(at, value)
	}
}

func (b *bypass) accuse(at inspector.Cursor, client ast.Expr) {
	name, object, ok := b.program.requestAt(at)
	if !ok {
		return
	}
	text := types.ExprString(client)
	if name == nil {
		b.report(client, fmt.Sprintf("%s is not the client of the request, so the engine neither records nor guards what goes through it: "+
			"give the *step.Request of %s a name and use its Client", text, types.TypeString(object, types.RelativeTo(b.program.pkg))))
		return
	}
	message := fmt.Sprintf("%s is not the client of the request, so the engine neither records nor guards what goes through it: use %s.Client", text, name.Name)
	if !b.program.inScope(name, client) {
		b.report(client, message)
		return
	}
	b.report(client, message, replace("Use the client of the request", client, name.Name+".Client"))
}
