// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

// collect finds the parameters that are objects of a cache, and what is read without a deep copy.
func (s *sharing) collect() {
	for c := range s.program.preorder((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil), (*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)) {
		switch n := c.Node().(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			s.function(n)
		case *ast.CallExpr:
			s.callback(c, n)
		case *ast.CompositeLit:
			s.callbacks(c, n)
		}
	}
}

// function looks at the signature of a function: event handlers and predicates have events, and a
// MapFunc returns requests for an object.
func (s *sharing) function(f ast.Node) {
	function, signature := s.program.signature(f)
	if function == nil || signature == nil {
		return
	}
	s.program.parameters(function, func(name *ast.Ident, t types.Type) {
		if n := named(t); name != nil && n != nil && pathOf(n.Obj()) == eventPath && !strings.HasSuffix(n.Obj().Name(), "GenericEvent") {
			s.events[s.program.info.Defs[name].(*types.Var)] = true //nolint:forcetypeassert // a parameter is one
		}
	})
	decl, isDecl := f.(*ast.FuncDecl)
	if isDecl {
		o, _ := s.program.info.Defs[decl.Name].(*types.Func)
		if !s.program.escapes[o] {
			return
		}
	}
	if isMapFunc(signature) {
		s.mark(function, 1, "a MapFunc is called with it")
	}
}

func isMapFunc(s *types.Signature) bool {
	if s.Params().Len() != 2 || s.Results().Len() != 1 || !isContext(s.Params().At(0).Type()) {
		return false
	}
	requests, ok := s.Results().At(0).Type().Underlying().(*types.Slice)
	return ok && isNamed(requests.Elem(), resultPath, "Request") && isObjectType(s.Params().At(1).Type())
}

// isObjectType reports whether t is client.Object, or a pointer to an object.
func isObjectType(t types.Type) bool {
	if _, ok := kindOf(t); ok {
		return true
	}
	return isNamed(t, clientPath, "Object") || isNamed(t, cachePath+"/cacheapi", "Object") || refersTo(t, unstructuredPath, "Unstructured")
}

// mark notes that a parameter of a function is an object of the cache.
func (s *sharing) mark(function *ast.FuncType, position int, why string) {
	i := 0
	s.program.parameters(function, func(name *ast.Ident, _ types.Type) {
		if v, ok := s.program.info.Defs[name].(*types.Var); ok && name != nil && i == position {
			s.objects[v] = why
		}
		i++
	})
}

// markAll notes that all parameters of a function that are objects, or may be, are of the cache.
func (s *sharing) markAll(at inspector.Cursor, e ast.Expr, why string) {
	f, ok := s.program.function(at, e)
	if !ok {
		return
	}
	function, _ := s.program.signature(f.Node())
	s.program.parameters(function, func(name *ast.Ident, t types.Type) {
		if name == nil || !(isObjectType(t) || types.IsInterface(t)) || isContext(t) {
			return
		}
		if v, ok := s.program.info.Defs[name].(*types.Var); ok {
			s.objects[v] = why
		}
	})
}

// callback looks for functions that are given to what calls them with objects of the cache, and for
// reads without a deep copy.
func (s *sharing) callback(at inspector.Cursor, call *ast.CallExpr) {
	f := s.program.callee(call)
	if f == nil {
		return
	}
	why := f.Name() + " calls the function with it"
	switch path := pathOf(f); {
	case path == predicatePath && strings.HasSuffix(f.Name(), "PredicateFuncs") && len(call.Args) == 1:
		s.markAll(at, call.Args[0], why)
	case strings.HasPrefix(path, runtimePath) && f.Name() == "IndexField" && len(call.Args) == 4:
		s.markAll(at, call.Args[3], why)
	case path == stepPath && (f.Name() == "WatchNamed" || f.Name() == "WatchMapped") && len(call.Args) == 2:
		s.markAll(at, call.Args[1], why)
	case path == clientPath && (f.Name() == "Get" || f.Name() == "List"):
		if !slices.ContainsFunc(call.Args, s.disablesCopies) {
			return
		}
		if u, ok := s.program.use(call); ok && u.objectOf() != nil {
			object := ast.Unparen(u.objectOf())
			if pointer, ok := object.(*ast.UnaryExpr); ok {
				object = pointer.X
			}
			if v := s.program.variable(object); v != nil && !v.IsField() {
				s.shallow[v] = true
			}
		}
	}
}

func (s *sharing) disablesCopies(arg ast.Expr) bool {
	return isNamed(s.program.info.TypeOf(arg), clientPath, "UnsafeDisableDeepCopyOption")
}

// callbacks looks at the functions in literals of structs.
func (s *sharing) callbacks(at inspector.Cursor, literal *ast.CompositeLit) {
	n := named(s.program.info.TypeOf(literal))
	if n == nil {
		return
	}
	path, name := pathOf(n.Obj()), n.Obj().Name()
	s.program.fields(literal, func(field *types.Var, value ast.Expr) {
		switch why := name + "." + field.Name() + " is called with it"; {
		case path == "k8s.io/client-go/tools/cache" && name == "ResourceEventHandlerFuncs",
			path == stepPath && name == "Watch" && field.Name() != "Object" && field.Name() != "Later",
			path == stepPath && name == "Step" && field.Name() == "Gate",
			path == handlersPath && field.Name() == "Selects":
			s.markAll(at, value, why)
		}
	})
}
