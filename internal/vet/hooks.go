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

// hooksAnalyzer reports methods of implementations of a document's actions that have the name of a
// hook of the ctrlkit RFC, and are never called: one of them has another signature, or the other one
// is missing.
//
// An implementation is a type of the package that has the methods of an interface NAMEImpl, beside
// which there is a function NewNAME with options for actions.
var hooksAnalyzer = newAnalyzer("hooks", runHooks,
	"report hooks of implementations that are never called\n\n"+
		"BeforeActionRun and AfterActionRun of an implementation are called around each action only if it\n"+
		"has both, with the parameters (action string, ctx context.Context, logger logr.Logger).")

// hookParams are the parameters of a hook, and hookMethods the names of the hooks.
const hookParams = "(string, context.Context, github.com/go-logr/logr.Logger)"

var hookMethods = []string{"BeforeActionRun", "AfterActionRun"}

func runHooks(pass *analysis.Pass) (any, error) {
	r := newReporter(pass)
	impls := implInterfaces(pass.Pkg)
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			method, ok := decl.(*ast.FuncDecl)
			if !ok || method.Recv == nil || !slices.Contains(hookMethods, method.Name.Name) {
				continue
			}
			f, ok := pass.TypesInfo.Defs[method.Name].(*types.Func)
			if !ok {
				continue
			}
			receiver := f.Signature().Recv().Type()
			if pointer, ok := receiver.(*types.Pointer); ok {
				receiver = pointer.Elem()
			}
			if slices.ContainsFunc(impls, func(impl *types.Interface) bool { return types.Implements(types.NewPointer(receiver), impl) }) {
				reportHook(r, method.Name, f, types.NewMethodSet(types.NewPointer(receiver)))
			}
		}
	}
	return nil, nil
}

// reportHook reports a hook that is never called.
func reportHook(r *reporter, name *ast.Ident, f *types.Func, methods *types.MethodSet) {
	if !isHook(f) {
		r.report(name, fmt.Sprintf("%s is never called: its parameters are not (action string, ctx context.Context, logger logr.Logger)", f.Name()))
		return
	}
	for _, other := range hookMethods {
		if methods.Lookup(f.Pkg(), other) == nil {
			r.report(name, fmt.Sprintf("%s is never called without a method %s", f.Name(), other))
		}
	}
}

func isHook(f *types.Func) bool {
	var params []string
	for param := range f.Signature().Params().Variables() {
		params = append(params, types.TypeString(types.Unalias(param.Type()), nil))
	}
	return "("+strings.Join(params, ", ")+")" == hookParams && f.Signature().Results().Len() == 0
}

// implInterfaces returns the interfaces of actions that are generated in the package and in those
// that it imports. An interface without a method, for a document without actions, has no
// implementations that can be recognized.
func implInterfaces(pkg *types.Package) []*types.Interface {
	var impls []*types.Interface
	for _, p := range append(slices.Clone(pkg.Imports()), pkg) {
		for _, name := range p.Scope().Names() {
			manager, ok := strings.CutSuffix(name, "Impl")
			impl, isType := p.Scope().Lookup(name).(*types.TypeName)
			constructor, isFunc := p.Scope().Lookup("New" + manager).(*types.Func)
			if !ok || !isType || !isFunc || !takesActionOptions(constructor.Signature()) {
				continue
			}
			if i, ok := impl.Type().Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
				impls = append(impls, i)
			}
		}
	}
	return impls
}

// takesActionOptions reports whether the last parameter of a function is that of options for actions.
func takesActionOptions(s *types.Signature) bool {
	if !s.Variadic() {
		return false
	}
	last, ok := s.Params().At(s.Params().Len() - 1).Type().(*types.Slice)
	return ok && refersTo(last.Elem(), rootPath, "ActionOption")
}
