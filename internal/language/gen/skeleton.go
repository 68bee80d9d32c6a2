// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"text/template"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

var (
	//go:embed skeleton.go.tmpl
	skeletonText string
	//go:embed skeleton_test.go.tmpl
	skeletonTestText string

	skeletonTemplate     = template.Must(template.New("skeleton").Parse(skeletonText))
	skeletonTestTemplate = template.Must(template.New("skeleton test").Parse(skeletonTestText))
)

// A skeletonView is the data of the skeleton templates.
type skeletonView struct {
	*managerView
	Type string // the type that implements the actions
	Test string
	Kind model.Kind // of the target
}

// Stub is the first version of the method of a type that implements the action.
func (a actionView) Stub(receiver string) string {
	doc := append([]string{a.Name + " is not implemented" + colonIf(a.Doc)}, a.Doc...)
	return fmt.Sprintf("%sfunc (impl *%s) %s {\n\treturn ctrlkit.RequeueIfError(errors.New(%q))\n}\n",
		comment(doc), receiver, a.Signature(), a.Name+" is not implemented")
}

// Stub returns the first version of the method of a type that implements an action, and the packages
// that it uses by their names. It returns "" if there is no such action in the package.
func Stub(pkg *model.Package, document, manager, action, receiver string) (method string, packages map[string]string) {
	m := managerNamed(pkg, document, manager)
	if m == nil {
		return "", nil
	}
	imports := newImports(pkg, documentNamed(pkg, document))
	for _, a := range newManagerView(m, imports, newPackageNames(pkg)).Actions {
		if a.Name == action {
			method = a.Stub(receiver)
		}
	}
	packages = map[string]string{}
	used := qualifiers([]byte(method))
	for path, name := range imports.names {
		if used[name] {
			packages[name] = path
		}
	}
	return method, packages
}

// Skeletons returns two files for each document with actions: NAME_actions.go, in which every
// action returns an error, and NAME_actions_test.go, which runs each action once. They are the
// beginning of hand-written files, and are not generated again.
func Skeletons(pkg *model.Package) ([]File, error) {
	names := newPackageNames(pkg)
	var files []File
	for _, document := range pkg.Documents {
		managers := slices.DeleteFunc(slices.Clone(document.Managers), func(m *model.Manager) bool { return len(m.Actions) == 0 })
		if len(managers) == 0 {
			continue
		}
		imports := newImports(pkg, document)
		var body, test bytes.Buffer
		for _, manager := range managers {
			view := skeletonView{managerView: newManagerView(manager, imports, names), Kind: manager.Target}
			view.Type = names.scope.take(unexported(manager.Name)+"Actions", "Impl")
			view.Test = names.scope.take("Test"+exported(manager.Name), "Actions")
			if err := skeletonTemplate.Execute(&body, view); err != nil {
				return nil, err
			}
			if err := skeletonTestTemplate.Execute(&test, view); err != nil {
				return nil, err
			}
		}
		base := strings.TrimSuffix(strings.TrimSuffix(document.File, ".ctrlkit"), ".cm") + "_actions"
		for name, text := range map[string][]byte{base + ".go": body.Bytes(), base + "_test.go": test.Bytes()} {
			content, err := format.Source(fmt.Appendf(nil, "package %s\n\n%s%s", pkg.Name, imports.usedBy(text), text))
			if err != nil {
				return nil, fmt.Errorf("writing the skeleton of %s: %w", document.File, err)
			}
			files = append(files, File{Name: name, Source: document.File, Content: content})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}
