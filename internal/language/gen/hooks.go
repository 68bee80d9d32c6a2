// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// CheckHooks returns an error for each hook of the ctrlkit RFC in Go files of the package that has
// other parameters than the RFC's and so is never called, if its type has a method for each action of
// a manager. It does not see implementations in other packages: `ctrlkit vet` does.
func CheckHooks(pkg *model.Package, fset *token.FileSet, files []*ast.File) error {
	methods := map[string][]*ast.FuncDecl{} // by the name of the type
	for _, file := range files {
		for _, decl := range file.Decls {
			if method, ok := decl.(*ast.FuncDecl); ok && method.Recv != nil {
				receiver := strings.TrimPrefix(types.ExprString(method.Recv.List[0].Type), "*")
				methods[receiver] = append(methods[receiver], method)
			}
		}
	}
	var errs []error
	for _, of := range methods {
		for _, method := range of {
			name := method.Name.Name
			if name != "BeforeActionRun" && name != "AfterActionRun" || isHook(method.Type) || !implements(pkg, of) {
				continue
			}
			errs = append(errs, fmt.Errorf("%s: %s is never called: write %s(action string, ctx context.Context, logger logr.Logger)",
				fset.Position(method.Name.Pos()), name, name))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// implements reports whether there is a method for each action of a manager that has actions.
func implements(pkg *model.Package, methods []*ast.FuncDecl) bool {
	has := func(action *model.Action) bool {
		return slices.ContainsFunc(methods, func(method *ast.FuncDecl) bool { return method.Name.Name == action.Name })
	}
	for _, document := range pkg.Documents {
		for _, manager := range document.Managers {
			if len(manager.Actions) > 0 && !slices.ContainsFunc(manager.Actions, func(a *model.Action) bool { return !has(a) }) {
				return true
			}
		}
	}
	return false
}

// isHook reports whether a method has the parameters of a hook, whatever the names of the packages
// of their types are in the file.
func isHook(method *ast.FuncType) bool {
	var params []string
	for _, field := range method.Params.List {
		text := types.ExprString(field.Type)
		for range max(1, len(field.Names)) {
			params = append(params, text[strings.LastIndex(text, ".")+1:])
		}
	}
	return slices.Equal(params, []string{"string", "Context", "Logger"}) && method.Results.NumFields() == 0
}
