// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

// A setup is what the controllers of a package watch.
type setup struct {
	program *program
	// watched are the keys of the kinds.
	watched map[string]bool
	// opaque says that something is watched of which the package does not show the kind.
	opaque bool
	// controllers are those that the package sets up, by the type of their reconciler or of their
	// object, with the place.
	controllers map[string]token.Pos
	// engines and completed are the types of objects for which an engine is made, and those for which
	// one gets its watches.
	engines, completed map[string]token.Pos
	// polled are the types of objects that are reconciled again after a time, by a step of the
	// library.
	polled map[string]bool
	// created are the keys of the kinds that the package creates.
	created map[string]bool
}

func newSetup(p *program) *setup {
	s := &setup{
		program: p, watched: map[string]bool{}, controllers: map[string]token.Pos{},
		engines: map[string]token.Pos{}, completed: map[string]token.Pos{}, polled: map[string]bool{}, created: map[string]bool{},
	}
	for c := range p.preorder((*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)) {
		switch n := c.Node().(type) {
		case *ast.CallExpr:
			s.call(n)
		case *ast.CompositeLit:
			s.literal(c, n)
		}
	}
	for object, at := range s.engines {
		if _, ok := s.completed[object]; ok {
			s.controllers[engineOf(object)] = at
		}
	}
	return s
}

// engineOf and reconcilerOf name controllers.
func engineOf(object string) string       { return "engine " + object }
func reconcilerOf(receiver string) string { return "reconciler " + receiver }

// watch notes that objects of a kind are watched.
func (s *setup) watch(t types.Type) {
	if k, ok := kindOf(t); ok {
		s.watched[k.key()] = true
		return
	}
	s.opaque = true
}

func (s *setup) watchArgument(call *ast.CallExpr, i int) {
	if i < len(call.Args) && !call.Ellipsis.IsValid() {
		s.watch(s.program.info.TypeOf(call.Args[i]))
		return
	}
	s.opaque = true
}

func (s *setup) call(call *ast.CallExpr) {
	p := s.program
	f := p.callee(call)
	if f == nil {
		s.escape(call)
		return
	}
	s.notesCreated(call, f)
	switch path := pathOf(f); {
	case f.Pkg() == p.pkg:
	case path == builderPath:
		s.builder(call, f.Name())
	case path == sourcePath:
		if f.Name() == "Kind" || f.Name() == "TypedKind" {
			s.watchArgument(call, 1)
		} else if f.Signature().Recv() == nil {
			s.opaque = true // a channel has objects of any kind
		}
	case path == controllerPath:
		s.controller(call, f)
	case strings.HasPrefix(path, cachePath) && f.Name() == "GetInformer":
		s.watchArgument(call, 1)
	case strings.HasPrefix(path, cachePath) && f.Name() == "GetInformerForKind":
		s.opaque = true
	case ours(path):
		s.library(call, f)
	case !strings.HasPrefix(path, runtimePath):
		s.escape(call)
	}
}

// builder reads a call of a method of a builder.
func (s *setup) builder(call *ast.CallExpr, method string) {
	switch method {
	case "For", "Owns", "WatchesMetadata":
		s.watchArgument(call, 0)
	case "Watches":
		if !refersTo(s.program.info.TypeOf(call.Args[0]), sourcePath, "Kind") { // a literal, in old versions
			s.watchArgument(call, 0)
		}
	case "WatchesRawSource":
		s.source(call, 0)
	case "Complete", "Build":
		s.reconcilers(call)
	}
}

// controller reads a call of a function or method of package controller.
func (s *setup) controller(call *ast.CallExpr, f *types.Func) {
	switch {
	case f.Name() == "Watch":
		s.source(call, 0)
	case f.Signature().Recv() == nil:
		s.reconcilers(call)
	}
}

// source reads an argument that is a source of events. One that is made here by source.Kind is read
// where it is made.
func (s *setup) source(call *ast.CallExpr, i int) {
	if i >= len(call.Args) {
		return
	}
	arg := ast.Unparen(call.Args[i])
	if v := s.program.variable(arg); v != nil && len(s.program.values[v]) == 1 {
		arg = ast.Unparen(s.program.values[v][0])
	}
	if made, ok := arg.(*ast.CallExpr); ok && pathOf(s.program.callee(made)) == sourcePath {
		return
	}
	if !refersTo(s.program.info.TypeOf(arg), sourcePath, "Kind") {
		s.opaque = true
	}
}

// reconcilers notes the types of this package that are passed to a controller.
func (s *setup) reconcilers(call *ast.CallExpr) {
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if t := named(s.program.info.TypeOf(e)); t != nil && t.Obj().Pkg() == s.program.pkg {
					s.controllers[reconcilerOf(t.Obj().Name())] = call.Pos()
				}
			}
			return true
		})
	}
}

// makers are the functions of package step that make an engine.
var makers = []string{"New", "FromManager", "Control"}

// library reads a call of a function of this module. What declares watches there is given objects of
// the kinds, or has their types as type arguments.
func (s *setup) library(call *ast.CallExpr, f *types.Func) {
	p := s.program
	arguments := p.typeArguments(call)
	switch path := pathOf(f); {
	case path == stepPath && slices.Contains(makers, f.Name()) && len(arguments) == 1:
		s.engines[arguments[0].String()] = call.Pos()
		s.foreignSteps(call)
		if f.Name() == "Control" {
			s.completed[arguments[0].String()] = call.Pos()
			s.watch(arguments[0])
		}
	case path == stepPath && (f.Name() == "Complete" || f.Name() == "Wire"):
		s.complete(call)
	case path == stepPath && f.Signature().Recv() == nil && strings.HasPrefix(f.Name(), "Watch"):
		s.watchArgument(call, 0)
	case path == handlersPath && f.Signature().Recv() == nil:
		for _, t := range arguments {
			s.watch(t)
			s.controllers[engineOf(t.String())] = call.Pos()
		}
		s.watchAll(call)
	case path == externalPath && f.Signature().Recv() == nil:
		s.watched["k8s.io/api/core.Namespace"] = true // for policies
		for _, t := range arguments {
			s.polled[t.String()] = f.Name() == "New" || s.polled[t.String()] // Simple with Refresh alone
		}
		s.watchAll(call)
	case path == applyPath || path == referencePath || path == statePath && f.Name() == "Enqueue":
		for _, t := range arguments {
			s.watch(t)
		}
		s.watchAll(call)
	}
}

// complete notes for which objects the engine of a call gets its watches.
func (s *setup) complete(call *ast.CallExpr) {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if engine := named(s.program.info.TypeOf(selector.X)); engine != nil && engine.TypeArgs().Len() == 1 {
		s.completed[engine.TypeArgs().At(0).String()] = call.Pos()
	}
}

// watchAll notes the kinds of all arguments that are objects.
func (s *setup) watchAll(call *ast.CallExpr) {
	for _, arg := range call.Args {
		if k, ok := kindOf(s.program.info.TypeOf(arg)); ok {
			s.watched[k.key()] = true
		} else if call.Ellipsis.IsValid() {
			s.opaque = true
		}
	}
}

// foreignSteps looks for steps of other modules, which may declare watches.
func (s *setup) foreignSteps(call *ast.CallExpr) {
	for _, arg := range call.Args {
		if isNamed(s.program.info.TypeOf(arg), stepPath, "Step") && !shows(s.program, arg, true) {
			s.opaque = true
		}
	}
	if call.Ellipsis.IsValid() {
		s.opaque = true
	}
}

// escape looks for a builder, a controller or an engine that is given to code of another package,
// which may add watches, and for steps and watches that come from there.
func (s *setup) escape(call *ast.CallExpr) {
	info := s.program.info
	if info.Types[call.Fun].IsType() {
		return
	}
	for _, arg := range call.Args {
		s.opaque = s.opaque || addsWatches(info.TypeOf(arg))
	}
	for _, result := range resultsOf(info.TypeOf(call)) {
		if slice, ok := types.Unalias(result).(*types.Slice); ok {
			result = slice.Elem()
		}
		if n := named(result); n != nil {
			path := pathOf(n.Obj())
			s.opaque = s.opaque || path == stepPath && n.Obj().Name() != "Request" || path == handlersPath || path == applyPath || path == sourcePath
		}
	}
}

// addsWatches reports whether code that has a value of the type can add watches with it.
func addsWatches(t types.Type) bool {
	n := named(t)
	if n == nil {
		return false
	}
	switch pathOf(n.Obj()) {
	case builderPath, sourcePath:
		return true
	case controllerPath:
		return n.Obj().Name() == "Controller" || n.Obj().Name() == "TypedController"
	case stepPath:
		return n.Obj().Name() == "Engine"
	}
	return false
}

func (s *setup) literal(at inspector.Cursor, literal *ast.CompositeLit) {
	p := s.program
	n := named(p.info.TypeOf(literal))
	if n == nil {
		return
	}
	path, name := pathOf(n.Obj()), n.Obj().Name()
	switch {
	case path == stepPath && name == "Watch":
		s.watchField(literal, "Object")
	case path == stepPath && name == "Step":
		p.fields(literal, func(field *types.Var, value ast.Expr) {
			if _, here := p.function(at, value); field.Name() == "Watches" && !here {
				s.opaque = true // it is declared elsewhere
			}
		})
	case path == sourcePath && name == "Kind": // in old versions of controller-runtime
		s.watchField(literal, "Type")
	case path == sourcePath:
		s.opaque = true
	case path == handlersPath && name == "Handler" && n.TypeArgs().Len() == 1:
		s.controllers[engineOf(n.TypeArgs().At(0).String())] = literal.Pos()
		if k, ok := kindOf(n.TypeArgs().At(0)); ok {
			s.watched[k.key()] = true
		}
	case path == externalPath && name == "Funcs":
		p.fields(literal, func(field *types.Var, _ ast.Expr) {
			if field.Name() == "Refresh" {
				s.polled[""] = true
			}
		})
	case path == externalPath && name == "Options":
		s.external(literal)
	case n.Obj().Pkg() != p.pkg:
		p.fields(literal, func(_ *types.Var, value ast.Expr) {
			s.opaque = s.opaque || addsWatches(p.info.TypeOf(value))
		})
	}
	if path == controllerPath {
		p.fields(literal, func(_ *types.Var, value ast.Expr) {
			if t := named(p.info.TypeOf(value)); t != nil && t.Obj().Pkg() == p.pkg {
				s.controllers[reconcilerOf(t.Obj().Name())] = literal.Pos()
			}
		})
	}
}

// external reads the options of an external resource: what is declared to be read is watched, and
// Secrets where they are published.
func (s *setup) external(options *ast.CompositeLit) {
	s.program.fields(options, func(field *types.Var, value ast.Expr) {
		switch field.Name() {
		case "ConnectionSecret", "Publish":
			s.watched["k8s.io/api/core.Secret"] = true
		case "Reads":
			reads, ok := ast.Unparen(value).(*ast.CompositeLit)
			if !ok {
				s.opaque = true
				return
			}
			for _, element := range reads.Elts {
				s.watch(s.program.info.TypeOf(element))
			}
		}
	})
}

func (s *setup) watchField(literal *ast.CompositeLit, name string) {
	found := false
	s.program.fields(literal, func(field *types.Var, value ast.Expr) {
		if field.Name() == name {
			found = true
			s.watch(s.program.info.TypeOf(value))
		}
	})
	s.opaque = s.opaque || !found
}

// notesCreated notes the kinds of objects that are created.
func (s *setup) notesCreated(call *ast.CallExpr, f *types.Func) {
	path := pathOf(f)
	create := path == clientPath && (f.Name() == "Create" || f.Name() == "Apply") ||
		path == utilPath && strings.HasPrefix(f.Name(), "Create") || path == applyPath && f.Name() == "Ensure"
	if !create {
		return
	}
	for _, arg := range call.Args {
		if k, ok := kindOf(s.program.info.TypeOf(arg)); ok {
			s.created[k.key()] = true
		}
	}
}

// A reconcileRoot is a function that reconciles objects: a Reconcile, or what has a step.Request.
type reconcileRoot struct {
	function inspector.Cursor
	// controller is the name of its controller in setup.
	controller string
	// connects says that it makes a client of an external system.
	connects bool
}

// roots returns the functions that reconcile.
func (p *program) roots() []reconcileRoot {
	var roots []reconcileRoot
	for c := range p.preorder((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		function, signature := p.signature(c.Node())
		if function == nil || signature == nil {
			continue
		}
		if decl, ok := c.Node().(*ast.FuncDecl); ok && decl.Name.Name == "Reconcile" && returnsOutcome(signature) && signature.Recv() != nil {
			if receiver := named(signature.Recv().Type()); receiver != nil {
				roots = append(roots, reconcileRoot{function: c, controller: reconcilerOf(receiver.Obj().Name())})
			}
		}
		p.parameters(function, func(_ *ast.Ident, t types.Type) {
			if object, ok := isRequest(t); ok {
				roots = append(roots, reconcileRoot{c, engineOf(object.String()), connects(signature)})
			}
		})
	}
	return append(roots, p.handlerRoots()...)
}

// connects reports whether a function returns a client of an external system.
func connects(signature *types.Signature) bool {
	results := signature.Results()
	return results.Len() == 2 && isNamed(results.At(0).Type(), externalPath, "Client")
}

// handlerRoots returns the functions that handlers of package handlers call.
func (p *program) handlerRoots() []reconcileRoot {
	var roots []reconcileRoot
	add := func(at inspector.Cursor, e ast.Expr, object types.Type) {
		if f, ok := p.function(at, e); ok {
			roots = append(roots, reconcileRoot{function: f, controller: engineOf(object.String())})
		}
	}
	for c := range p.preorder((*ast.CompositeLit)(nil), (*ast.CallExpr)(nil)) {
		switch n := c.Node().(type) {
		case *ast.CompositeLit:
			handler := named(p.info.TypeOf(n))
			if handler == nil || !isObject(handler.Obj(), handlersPath, "Handler") || handler.TypeArgs().Len() != 1 {
				continue
			}
			p.fields(n, func(field *types.Var, value ast.Expr) {
				if strings.HasPrefix(field.Name(), "On") {
					add(c, value, handler.TypeArgs().At(0))
				}
			})
		case *ast.CallExpr:
			if t := p.typeArguments(n); isObject(p.callee(n), handlersPath, "Status") && len(t) == 1 && len(n.Args) > 2 {
				add(c, n.Args[2], t[0])
			}
		}
	}
	return roots
}
