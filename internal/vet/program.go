// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// A program is the code of a package without its tests, and what several analyzers ask about it.
type program struct {
	info *types.Info
	pkg  *types.Package
	// files are those that are not tests.
	files []inspector.Cursor
	// functions are the bodies of the functions and methods that the package declares.
	functions map[*types.Func]inspector.Cursor
	// values are what is assigned to each variable and field.
	values map[*types.Var][]ast.Expr
	// ranged are the variables that have the elements of something, one after another.
	ranged map[*types.Var]ast.Expr
	// arguments are what is passed for each parameter of a function that the package declares. A
	// function that is used without being called has unknown ones.
	arguments map[*types.Var][]ast.Expr
	escapes   map[*types.Func]bool
	// enclosing are the clients that are being looked at, against recursion.
	enclosing map[types.Object]bool
}

var programs = &analysis.Analyzer{
	Name:       "program",
	Doc:        "collect the functions of a package, and what is assigned to its variables",
	Requires:   []*analysis.Analyzer{inspect.Analyzer},
	ResultType: reflect.TypeFor[*program](),
	Run: func(pass *analysis.Pass) (any, error) {
		in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector) //nolint:forcetypeassert // what inspect.Analyzer documents
		return newProgram(pass, in), nil
	},
}

// programOf returns the program for one analyzer. What is known is shared by all, which run at the
// same time; what they are looking at is not.
func programOf(pass *analysis.Pass) *program {
	own := *pass.ResultOf[programs].(*program) //nolint:forcetypeassert // its result type
	own.enclosing = map[types.Object]bool{}
	return &own
}

func newProgram(pass *analysis.Pass, in *inspector.Inspector) *program {
	p := &program{
		info: pass.TypesInfo, pkg: pass.Pkg, functions: map[*types.Func]inspector.Cursor{}, values: map[*types.Var][]ast.Expr{}, ranged: map[*types.Var]ast.Expr{},
		arguments: map[*types.Var][]ast.Expr{}, escapes: map[*types.Func]bool{}, enclosing: map[types.Object]bool{},
	}
	for file := range in.Root().Children() {
		if !strings.HasSuffix(pass.Fset.Position(file.Node().Pos()).Filename, "_test.go") {
			p.files = append(p.files, file)
		}
	}
	for c, decl := range nodes[*ast.FuncDecl](p.files...) {
		if f, ok := p.info.Defs[decl.Name].(*types.Func); ok && decl.Body != nil {
			p.functions[f] = c
		}
	}
	p.collectValues()
	p.collectArguments()
	return p
}

// preorder returns the nodes of these types in all files.
func (p *program) preorder(nodes ...ast.Node) iter.Seq[inspector.Cursor] {
	return func(yield func(inspector.Cursor) bool) {
		for _, file := range p.files {
			for c := range file.Preorder(nodes...) {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// nodes returns the nodes of a type below others.
func nodes[N ast.Node](below ...inspector.Cursor) iter.Seq2[inspector.Cursor, N] {
	return func(yield func(inspector.Cursor, N) bool) {
		var kind N
		for _, from := range below {
			for c := range from.Preorder(kind) {
				if !yield(c, c.Node().(N)) { //nolint:forcetypeassert // that is asked for
					return
				}
			}
		}
	}
}

// callee returns the function that is called, without type arguments; nil if it is a value.
func (p *program) callee(call *ast.CallExpr) *types.Func {
	f, _ := typeutil.Callee(p.info, call).(*types.Func)
	if f == nil {
		return nil
	}
	return f.Origin()
}

// typeArguments returns those of the function that is called.
func (p *program) typeArguments(call *ast.CallExpr) []types.Type {
	fun := ast.Unparen(call.Fun)
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	if selector, ok := fun.(*ast.SelectorExpr); ok {
		fun = selector.Sel
	}
	name, ok := fun.(*ast.Ident)
	if !ok {
		return nil
	}
	var all []types.Type
	for t := range p.info.Instances[name].TypeArgs.Types() {
		all = append(all, t)
	}
	return all
}

func (p *program) collectValues() {
	add := func(target, value ast.Expr) {
		if v := p.variable(target); v != nil {
			p.values[v] = append(p.values[v], value)
		}
	}
	for c := range p.preorder((*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.CompositeLit)(nil), (*ast.RangeStmt)(nil), (*ast.TypeSwitchStmt)(nil)) {
		switch n := c.Node().(type) {
		case *ast.AssignStmt:
			for i, target := range n.Lhs {
				add(target, valueAt(n.Rhs, i, len(n.Lhs)))
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if len(n.Values) > 0 {
					add(name, valueAt(n.Values, i, len(n.Names)))
				}
			}
		case *ast.RangeStmt:
			for _, target := range []ast.Expr{n.Key, n.Value} {
				if target != nil {
					add(target, &ast.BadExpr{From: n.Pos(), To: n.End()})
				}
			}
			if n.Value != nil {
				if v := p.variable(n.Value); v != nil && n.Tok == token.DEFINE {
					p.ranged[v] = n.X
				}
			}
		case *ast.TypeSwitchStmt:
			p.cases(n)
		case *ast.CompositeLit:
			p.fields(n, func(field *types.Var, value ast.Expr) { p.values[field] = append(p.values[field], value) })
		}
	}
}

// cases notes what the variables of a type switch have, one in each of its cases.
func (p *program) cases(n *ast.TypeSwitchStmt) {
	assign, ok := n.Assign.(*ast.AssignStmt)
	if !ok {
		return
	}
	for _, clause := range n.Body.List {
		if v, ok := p.info.Implicits[clause].(*types.Var); ok {
			p.values[v] = append(p.values[v], assign.Rhs[0])
		}
	}
}

// valueAt returns what is assigned to the i-th of several targets. Of several results of a call it
// is the call for the first, and a BadExpr, which is nothing that is known, for the others.
func valueAt(values []ast.Expr, i, targets int) ast.Expr {
	if len(values) == targets || i == 0 {
		return values[i]
	}
	return &ast.BadExpr{From: values[0].Pos(), To: values[0].End()}
}

// fields calls f for each field that a literal of a struct sets.
func (p *program) fields(literal *ast.CompositeLit, f func(field *types.Var, value ast.Expr)) {
	t := p.info.TypeOf(literal)
	if t == nil {
		return
	}
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	structure, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Key.(*ast.Ident); ok {
				if field, ok := p.info.Uses[name].(*types.Var); ok {
					f(field.Origin(), pair.Value)
				}
			}
		} else if i < structure.NumFields() {
			f(structure.Field(i).Origin(), element)
		}
	}
}

// variable returns the variable or field that an expression names, nil if it does not.
func (p *program) variable(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := p.info.ObjectOf(e).(*types.Var)
		if v != nil {
			return v.Origin()
		}
	case *ast.SelectorExpr:
		if s := p.info.Selections[e]; s != nil && s.Kind() == types.FieldVal {
			return s.Obj().(*types.Var).Origin() //nolint:forcetypeassert // a field is a variable
		}
		v, _ := p.info.Uses[e.Sel].(*types.Var) // of another package
		return v
	}
	return nil
}

func (p *program) collectArguments() {
	called := map[*ast.Ident]bool{}
	for _, call := range nodes[*ast.CallExpr](p.files...) {
		f := p.callee(call)
		if _, ok := p.functions[f]; f == nil || !ok {
			continue
		}
		called[nameOf(call.Fun)] = true
		for i := range f.Signature().Params().Len() {
			if i < len(call.Args) {
				parameter := f.Signature().Params().At(i)
				p.arguments[parameter] = append(p.arguments[parameter], call.Args[i])
			}
		}
	}
	for _, name := range nodes[*ast.Ident](p.files...) {
		if f, ok := p.info.Uses[name].(*types.Func); ok && !called[name] {
			p.escapes[f.Origin()] = true
		}
	}
}

// nameOf returns the name of the function in a call, nil if it has none.
func nameOf(fun ast.Expr) *ast.Ident {
	switch f := ast.Unparen(fun).(type) {
	case *ast.Ident:
		return f
	case *ast.SelectorExpr:
		return f.Sel
	case *ast.IndexExpr:
		return nameOf(f.X)
	case *ast.IndexListExpr:
		return nameOf(f.X)
	}
	return nil
}

// reach returns the functions that may run when one of these does: itself, and what it names.
func (p *program) reach(starts ...inspector.Cursor) []inspector.Cursor {
	var reached []inspector.Cursor
	seen := map[inspector.Cursor]bool{}
	for queue := starts; len(queue) > 0; queue = queue[1:] {
		f := queue[0]
		if seen[f] {
			continue
		}
		seen[f] = true
		reached = append(reached, f)
		for _, name := range nodes[*ast.Ident](f) {
			used, ok := p.info.Uses[name].(*types.Func)
			if !ok {
				continue
			}
			if next, ok := p.functions[used.Origin()]; ok {
				queue = append(queue, next)
			}
		}
	}
	return reached
}

// function returns the body of a function that an expression names or is: a literal, a function or
// method of the package, or a variable that holds one of these.
func (p *program) function(at inspector.Cursor, e ast.Expr) (inspector.Cursor, bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return at.FindNode(e)
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		name := nameOf(e)
		if f, ok := p.info.Uses[name].(*types.Func); ok {
			body, ok := p.functions[f.Origin()]
			return body, ok
		}
		if v, ok := p.info.Uses[name].(*types.Var); ok && len(p.values[v]) == 1 {
			if literal, ok := p.values[v][0].(*ast.FuncLit); ok {
				return at.Inspector().Root().FindNode(literal)
			}
		}
	}
	return inspector.Cursor{}, false
}

// shows reports whether the package shows how a step is made: by a literal, a function of the
// package, or one of this module. References and external resources have conditions that only their
// options name, and other packages see; named says that they count as shown.
func shows(p *program, e ast.Expr, named bool) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		f := p.callee(e)
		_, here := p.functions[f]
		return here || ours(pathOf(f)) && (named || pathOf(f) != referencePath && pathOf(f) != externalPath)
	case *ast.Ident, *ast.SelectorExpr:
		v, ok := p.info.Uses[nameOf(e)].(*types.Var)
		return ok && len(p.values[v]) == 1 && shows(p, p.values[v][0], named)
	}
	return false
}

// signature returns the type of a function and its signature: a declaration or a literal.
func (p *program) signature(function ast.Node) (*ast.FuncType, *types.Signature) {
	switch f := function.(type) {
	case *ast.FuncDecl:
		if o, ok := p.info.Defs[f.Name].(*types.Func); ok {
			return f.Type, o.Signature()
		}
	case *ast.FuncLit:
		s, _ := p.info.TypeOf(f).(*types.Signature)
		return f.Type, s
	}
	return nil, nil
}

// innermost returns the function that a node belongs to.
func innermost(c inspector.Cursor) (inspector.Cursor, bool) {
	for f := range c.Parent().Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		return f, true
	}
	return inspector.Cursor{}, false
}

// parameters calls f for each parameter with its name, which is nil if it has none or is blank.
func (p *program) parameters(function *ast.FuncType, f func(name *ast.Ident, t types.Type)) {
	for _, field := range function.Params.List {
		t := p.info.TypeOf(field.Type)
		if len(field.Names) == 0 {
			f(nil, t)
		}
		for _, name := range field.Names {
			if name.Name == "_" {
				name = nil
			}
			f(name, t)
		}
	}
}

// inScope reports whether a name still means the same variable at a node.
func (p *program) inScope(name *ast.Ident, at ast.Node) bool {
	scope := p.pkg.Scope().Innermost(at.Pos())
	if scope == nil {
		return false
	}
	_, object := scope.LookupParent(name.Name, at.Pos())
	return object != nil && object == p.info.Defs[name]
}
