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
)

// sharedAnalyzer reports changes of objects that belong to a cache, which all controllers of the
// process share. A variable that is also assigned something else, such as a copy, is not reported,
// and an object is followed into the functions of the package to which only such objects are passed.
var sharedAnalyzer = newAnalyzer("shared", runShared,
	"report changes of objects that belong to a cache\n\n"+
		"Objects of events, predicates, indexes and listers are shared by all controllers of the process: to change one is a data race.")

func runShared(pass *analysis.Pass) (any, error) {
	p := programOf(pass)
	s := &sharing{reporter: newReporter(pass), program: p, objects: map[*types.Var]string{}, events: map[*types.Var]bool{}, shallow: map[*types.Var]bool{}}
	s.collect()
	for c := range p.preorder((*ast.AssignStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.CallExpr)(nil)) {
		switch n := c.Node().(type) {
		case *ast.AssignStmt:
			for _, target := range n.Lhs {
				s.written(target, target)
			}
		case *ast.IncDecStmt:
			s.written(n.X, n.X)
		case *ast.CallExpr:
			s.call(n)
		}
	}
	return nil, nil
}

// sharing knows which variables refer to objects of a cache.
type sharing struct {
	*reporter

	program *program
	// objects are the parameters that are such objects, with what they are.
	objects map[*types.Var]string
	// events are the parameters that are events.
	events map[*types.Var]bool
	// shallow are the variables that were read without a deep copy: objects, and lists.
	shallow map[*types.Var]bool
	// visiting are the variables that are being looked at, against recursion.
	visiting []*types.Var
}

// written reports an assignment to a part of a shared object.
func (s *sharing) written(node ast.Node, target ast.Expr) {
	if why := s.within(target); why != "" {
		s.accuse(node, types.ExprString(target), why)
	}
}

func (s *sharing) accuse(node ast.Node, text, why string) {
	s.report(node, fmt.Sprintf("%s is changed in an object that belongs to the cache and is shared (%s): change a copy, such as one by DeepCopy", text, why))
}

// within returns why the variable that an expression denotes is part of a shared object, empty if it
// is not.
func (s *sharing) within(e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		if selection := s.program.info.Selections[e]; selection == nil || selection.Kind() != types.FieldVal {
			return ""
		}
		if isReference(s.program.info.TypeOf(e.X)) {
			return s.refers(e.X)
		}
		return s.within(e.X)
	case *ast.IndexExpr:
		if isReference(s.program.info.TypeOf(e.X)) {
			return s.refers(e.X)
		}
		return s.within(e.X)
	case *ast.StarExpr:
		return s.refers(e.X)
	}
	return ""
}

// isReference reports whether a value of the type refers to memory that it does not hold itself.
func isReference(t types.Type) bool {
	if t == nil {
		return false
	}
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Map, *types.Slice, *types.Interface:
		return true
	}
	return false
}

// refers returns why a pointer, map, slice or interface refers to a shared object, or to a part of
// one.
func (s *sharing) refers(e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := s.program.info.Uses[e].(*types.Var); ok {
			return s.variable(v)
		}
	case *ast.SelectorExpr:
		if v := s.program.variable(e.X); v != nil && s.events[v] && slices.Contains([]string{"Object", "ObjectOld", "ObjectNew"}, e.Sel.Name) {
			return "an event of package event has it"
		}
		if s.copied(e.X) {
			return "it was read with UnsafeDisableDeepCopy"
		}
		return s.within(e)
	case *ast.IndexExpr:
		return s.within(e)
	case *ast.TypeAssertExpr:
		return s.refers(e.X)
	case *ast.SliceExpr:
		return s.refers(e.X)
	case *ast.UnaryExpr:
		return s.within(e.X)
	case *ast.CallExpr:
		return s.result(e)
	}
	return ""
}

// copied reports whether an expression is a shallow copy of an object, or a part of one: a reference
// in it refers to the object of the cache.
func (s *sharing) copied(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := s.program.info.Uses[e].(*types.Var)
		if !ok {
			return false
		}
		if items, ok := s.program.ranged[v]; ok {
			return s.isItems(items)
		}
		if _, isObject := kindOf(v.Type()); s.shallow[v] {
			return isObject && !hasItems(v.Type())
		}
		values := s.program.values[v]
		if len(values) != 1 {
			return false
		}
		pointer, ok := ast.Unparen(values[0]).(*ast.UnaryExpr)
		return ok && s.copied(pointer.X)
	case *ast.IndexExpr:
		return s.isItems(e.X)
	case *ast.SelectorExpr:
		return !isReference(s.program.info.TypeOf(e)) && s.copied(e.X)
	}
	return false
}

// isItems reports whether an expression is the items of a list that was read without a deep copy.
func (s *sharing) isItems(e ast.Expr) bool {
	selector, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Items" {
		return false
	}
	v := s.program.variable(selector.X)
	return v != nil && s.shallow[v]
}

func hasItems(t types.Type) bool {
	n := named(t)
	if n == nil {
		return false
	}
	structure, ok := n.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for field := range structure.Fields() {
		if field.Name() == "Items" {
			return true
		}
	}
	return false
}

// variable returns why a variable refers to a shared object: it is a parameter that is one, or
// everything that is assigned to it refers to one.
func (s *sharing) variable(v *types.Var) string {
	if slices.Contains(s.visiting, v) {
		return ""
	}
	s.visiting = append(s.visiting, v)
	defer func() { s.visiting = s.visiting[:len(s.visiting)-1] }()
	values := s.program.values[v]
	if why := s.objects[v]; why != "" && len(values) == 0 {
		return why
	}
	if elements, ok := s.program.ranged[v]; ok {
		if isReference(v.Type()) {
			return s.refers(elements)
		}
		return ""
	}
	if f := s.program.parameterOf(v); f != nil {
		if s.program.escapes[f] || len(values) > 0 {
			return ""
		}
		values = s.program.arguments[v]
	}
	return s.all(values)
}

// all returns why all values refer to shared objects.
func (s *sharing) all(values []ast.Expr) string {
	why := ""
	for _, value := range values {
		if why = s.refers(value); why == "" {
			return ""
		}
	}
	return why
}

// result returns why a call returns a shared object, or a part of one.
func (s *sharing) result(call *ast.CallExpr) string {
	p := s.program
	if p.info.Types[call.Fun].IsType() && len(call.Args) == 1 {
		return s.refers(call.Args[0])
	}
	f := p.callee(call)
	selector, _ := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if f == nil || selector == nil {
		return ""
	}
	switch path := pathOf(f); {
	case path == stepPath && f.Name() == "Snapshot":
		return "Snapshot returns it"
	case strings.Contains(path, "/listers/") && (f.Name() == "Get" || f.Name() == "List"):
		return "a lister returns it"
	case path == metaPath && slices.Contains([]string{"GetLabels", "GetAnnotations", "GetFinalizers", "GetOwnerReferences"}, f.Name()):
		return s.refers(selector.X)
	}
	return ""
}

// call reports calls that change one of their arguments, or their receiver.
func (s *sharing) call(call *ast.CallExpr) {
	if name, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && len(call.Args) > 0 {
		if b, ok := s.program.info.Uses[name].(*types.Builtin); ok && slices.Contains([]string{"delete", "clear", "copy"}, b.Name()) {
			s.argument(call, 0)
		}
		return
	}
	f := s.program.callee(call)
	if f == nil {
		return
	}
	if u, ok := s.program.use(call); ok {
		s.clientCall(u)
		return
	}
	if i, ok := changed(f); ok {
		s.argument(call, i)
		return
	}
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Signature().Recv() == nil || !strings.HasPrefix(f.Name(), "Set") || len(f.Name()) == len("Set") {
		return
	}
	why := s.refers(selector.X)
	if why == "" && !isReference(s.program.info.TypeOf(selector.X)) {
		why = s.within(selector.X)
	}
	if why != "" {
		s.accuse(call, types.ExprString(selector.X), why)
	}
}

func (s *sharing) argument(call *ast.CallExpr, i int) {
	if i < len(call.Args) {
		if why := s.refers(call.Args[i]); why != "" {
			s.accuse(call, types.ExprString(call.Args[i]), why)
		}
	}
}

// clientCall reports a shared object in which a client stores the answer of the API server.
func (s *sharing) clientCall(u use) {
	position := 1
	switch u.method[strings.LastIndexByte(u.method, '.')+1:] {
	case "Get":
		position = 2
	case "Create", "Update", "Patch":
	default:
		return
	}
	s.argument(u.call, position)
}

// changed returns which argument a function changes.
func changed(f *types.Func) (int, bool) {
	name := f.Name()
	if f.Signature().Recv() != nil {
		return 0, false
	}
	switch pathOf(f) {
	case utilPath:
		switch name {
		case "AddFinalizer", "RemoveFinalizer":
			return 0, true
		case "SetControllerReference", "SetOwnerReference", "RemoveOwnerReference", "RemoveControllerReference":
			return 1, true
		}
	case metaPath:
		return 0, strings.HasPrefix(name, "SetMetaData")
	case apiMetaPath:
		return 0, name == "SetStatusCondition" || name == "RemoveStatusCondition"
	case unstructuredPath:
		return 0, strings.HasPrefix(name, "SetNested") || name == "RemoveNestedField"
	case "sort":
		return 0, name == "Slice" || name == "SliceStable" || name == "Strings" || name == "Ints"
	case "slices":
		return 0, strings.HasPrefix(name, "Sort") && !strings.HasPrefix(name, "Sorted") || name == "Reverse"
	case "maps":
		return 0, name == "Copy" || name == "DeleteFunc"
	}
	return 0, false
}
