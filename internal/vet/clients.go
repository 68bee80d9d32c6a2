// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"
)

// An origin is where a client comes from.
type origin int

const (
	originUnknown origin = iota
	// originManager is the client of the manager, which reads from its cache.
	originManager
	// originRequest is the client of a step.Request.
	originRequest
)

// A use is a call of a method of a client.
type use struct {
	call *ast.CallExpr
	// method is the one of the interfaces of controller-runtime: Get, List, Create, ...
	method string
	// client is the expression of the client. For an object that embeds a client it is the object.
	client ast.Expr
	// field is the field of the object that embeds the client; nil if client is one.
	field *types.Var
	// live says that the expression only reads: it may read from the API server, as
	// Request.APIReader does.
	live bool
}

// requests are the methods of clients that read or write objects.
var requests = map[string]bool{
	"Get": true, "List": true, "Create": true, "Update": true, "Patch": true, "Apply": true, "Delete": true, "DeleteAllOf": true,
}

// use returns what a call does with a client; false if it does not call one.
func (p *program) use(call *ast.CallExpr) (use, bool) {
	callee := p.callee(call)
	if callee == nil || pathOf(callee) != clientPath || callee.Signature().Recv() == nil {
		return use{}, false
	}
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return use{}, false
	}
	u := use{call: call, method: callee.Name(), client: selector.X}
	if inner, ok := ast.Unparen(selector.X).(*ast.CallExpr); ok { // r.Status().Update(...)
		if f := p.callee(inner); f != nil && pathOf(f) == clientPath && f.Signature().Recv() != nil && slices.Contains([]string{"Status", "SubResource"}, f.Name()) {
			if selector, ok = ast.Unparen(inner.Fun).(*ast.SelectorExpr); !ok {
				return use{}, false
			}
			u.client = selector.X
			u.method = f.Name() + "." + u.method
		}
	}
	t := p.info.TypeOf(u.client)
	if !types.IsInterface(t) {
		u.field = p.embedded(selector)
		if u.field == nil {
			return use{}, false
		}
		t = u.field.Type()
	}
	u.live = !isClient(t)
	return u, requests[callee.Name()]
}

// embedded returns the field through which a selector reaches a method of an interface.
func (p *program) embedded(selector *ast.SelectorExpr) *types.Var {
	s := p.info.Selections[selector]
	if s == nil {
		return nil
	}
	t := s.Recv()
	var field *types.Var
	for _, i := range s.Index()[:max(len(s.Index())-1, 0)] {
		if pointer, ok := t.Underlying().(*types.Pointer); ok {
			t = pointer.Elem()
		}
		structure, ok := t.Underlying().(*types.Struct)
		if !ok {
			return nil
		}
		field = structure.Field(i)
		t = field.Type()
	}
	if field == nil {
		return nil
	}
	return field.Origin()
}

// originOf returns where the client of a use comes from.
func (p *program) originOf(u use) origin {
	if u.field != nil {
		return p.originOfField(u.field)
	}
	return p.originOfExpr(u.client)
}

// originOfExpr returns where a client comes from, as far as the package shows.
func (p *program) originOfExpr(e ast.Expr) origin {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		return p.originOfCall(e)
	case *ast.SelectorExpr:
		if _, ok := isRequest(p.info.TypeOf(e.X)); ok && e.Sel.Name == "Client" {
			return originRequest
		}
		if field := p.variable(e); field != nil && field.IsField() {
			return p.originOfField(field)
		}
	case *ast.Ident:
		v, ok := p.info.Uses[e].(*types.Var)
		if !ok || p.enclosing[v] {
			return originUnknown
		}
		p.enclosing[v] = true
		defer delete(p.enclosing, v)
		if f := p.parameterOf(v); f != nil {
			if p.escapes[f] || len(p.values[v]) > 0 {
				return originUnknown
			}
			return p.common(p.arguments[v])
		}
		return p.common(p.values[v])
	}
	return originUnknown
}

// originOfCall knows the functions that return the manager's client, or wrap another one.
func (p *program) originOfCall(call *ast.CallExpr) origin {
	f := p.callee(call)
	selector, _ := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	switch {
	case f == nil:
		return originUnknown
	case f.Name() == "GetClient" && pathOf(f) == clusterPath && selector != nil && refersTo(p.info.TypeOf(selector.X), managerPath, "Manager"):
		return originManager
	case f.Name() == "Client" && pathOf(f) == handlersPath:
		return originManager
	case pathOf(f) == clientPath && f.Signature().Recv() == nil && len(call.Args) > 0 && isClient(p.info.TypeOf(call.Args[0])):
		return p.originOfExpr(call.Args[0]) // client.WithFieldOwner and the like
	}
	return originUnknown
}

// originOfField returns where the client in a field comes from: from what the package stores in it.
// A client that is embedded is that of the manager by the convention of all scaffolds.
func (p *program) originOfField(field *types.Var) origin {
	if p.enclosing[field] {
		return originUnknown
	}
	p.enclosing[field] = true
	defer delete(p.enclosing, field)
	if values := p.values[field]; len(values) > 0 || !field.Embedded() {
		return p.common(values)
	}
	if isNamed(field.Type(), clientPath, "Client") {
		return originManager
	}
	return originUnknown
}

// common returns the origin that all expressions have.
func (p *program) common(all []ast.Expr) origin {
	if len(all) == 0 {
		return originUnknown
	}
	first := p.originOfExpr(all[0])
	for _, e := range all[1:] {
		if p.originOfExpr(e) != first {
			return originUnknown
		}
	}
	return first
}

// parameterOf returns the function of which v is a parameter, nil if it is none of those that the
// package declares.
func (p *program) parameterOf(v *types.Var) *types.Func {
	for f := range p.functions {
		for parameter := range f.Signature().Params().Variables() {
			if parameter == v {
				return f
			}
		}
	}
	return nil
}

// soleClient reports whether a field is the only client of its struct, so that it can't be mixed up
// with one for another cluster.
func (p *program) soleClient(field *types.Var, structure types.Type) bool {
	n := named(structure)
	if n == nil {
		return false
	}
	fields, ok := n.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	clients, found := 0, false
	for f := range fields.Fields() {
		if isClient(f.Type()) {
			clients++
			found = found || f.Origin() == field
		}
	}
	return clients == 1 && found
}

// objectOf returns the argument of a use that is the object or the list.
func (u use) objectOf() ast.Expr {
	position := 1
	if u.method == "Get" {
		position = 2
	}
	if position >= len(u.call.Args) {
		return nil
	}
	return u.call.Args[position]
}

// requestAt returns the name of the step.Request at a node, and the type of its object. The name is
// nil if the function does not use its request.
func (p *program) requestAt(at inspector.Cursor) (name *ast.Ident, object types.Type, ok bool) {
	for f := range at.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		if f == at {
			continue
		}
		function, _ := p.signature(f.Node())
		if function == nil {
			continue
		}
		p.parameters(function, func(n *ast.Ident, t types.Type) {
			if of, is := isRequest(t); is && !ok {
				name, object, ok = n, of, true
			}
		})
		if ok {
			return name, object, true
		}
	}
	return nil, nil, false
}
