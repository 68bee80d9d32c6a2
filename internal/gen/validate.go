// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"errors"
	"fmt"
	"go/token"

	"github.com/ctrlkit/ctrlkit/internal/dsl/model"
)

// validate returns an error for packages whose Go would not compile. The checker reports most of
// these mistakes first, with a position.
func validate(pkg *model.Package) error {
	v := &validator{pkg: pkg, owners: map[string]string{}}
	if !token.IsIdentifier(pkg.Name) {
		v.errorf(token.Position{}, "%q is not a name for a Go package", pkg.Name)
	}
	files := map[string]string{}
	for _, document := range pkg.Documents {
		name := fileName(document.File)
		if other, ok := files[name]; ok {
			v.errorf(token.Position{}, "%s and %s would both generate %s: rename one of them", other, document.File, name)
		}
		files[name] = document.File
		for _, manager := range document.Managers {
			v.manager(manager)
		}
	}
	for _, document := range pkg.Documents {
		for _, manager := range document.Managers {
			v.ownTypes(manager)
		}
	}
	return errors.Join(v.problems...)
}

type validator struct {
	pkg      *model.Package
	owners   map[string]string // the exported identifiers of the package: for which manager each is generated
	problems []error
}

func (v *validator) errorf(pos token.Position, format string, args ...any) {
	problem := fmt.Errorf(format, args...)
	if pos.IsValid() {
		problem = fmt.Errorf("%v: %w", pos, problem)
	}
	v.problems = append(v.problems, problem)
}

func (v *validator) manager(manager *model.Manager) {
	for _, name := range namesOf(manager).all(manager) {
		if other, ok := v.owners[name]; ok {
			v.errorf(manager.Pos, "the managers %s and %s both generate %s: rename one of them", other, manager.Name, name)
			continue
		}
		v.owners[name] = manager.Name
	}
	if manager.Target.List == "" {
		v.errorf(manager.Pos, "package %s has no list type for %s, without which it cannot be watched", manager.Target.Package, manager.Target.Type)
	}
	getters := map[string]string{}
	for _, st := range manager.States {
		getter := "Get" + exported(st.Name)
		if other, ok := getters[getter]; ok {
			v.errorf(st.Pos, "the states %s and %s both get the getter %s: rename one of them", other, st.Name, getter)
		}
		getters[getter] = st.Name
		v.state(st)
	}
	declared := map[*model.State]bool{}
	for _, st := range manager.States {
		declared[st] = true
	}
	actions := map[string]bool{}
	for _, action := range manager.Actions {
		if actions[action.Name] {
			v.errorf(action.Pos, "the action %s is declared twice", action.Name)
		}
		actions[action.Name] = true
		v.action(manager, action, declared)
	}
}

func (v *validator) state(st *model.State) {
	v.selectors(st, "labels/", st.Labels)
	v.selectors(st, "fields/", st.Fields)
	l := newLookup(st)
	if st.Kind.List == "" && !l.byName() {
		v.errorf(st.Pos, "state %s has to be listed, but package %s has no list type for %s", st.Name, st.Kind.Package, st.Kind.Type)
	}
	if st.Namespace.Mode == model.NamedNamespace && st.Namespace.Value == nil {
		v.errorf(st.Pos, "state %s is in a namespace that is not named", st.Name)
	}
}

func (v *validator) selectors(st *model.State, prefix string, selectors []model.Selector) {
	seen := map[string]bool{}
	for _, selector := range selectors {
		if seen[selector.Key] {
			v.errorf(selector.Pos, "state %s selects by %s%s twice", st.Name, prefix, selector.Key)
		}
		seen[selector.Key] = true
	}
}

func (v *validator) action(manager *model.Manager, action *model.Action, declared map[*model.State]bool) {
	given := map[*model.State]bool{}
	for _, st := range action.States {
		if given[st] {
			v.errorf(action.Pos, "action %s is given the state %s twice", action.Name, st.Name)
		}
		given[st] = true
		if !declared[st] {
			v.errorf(action.Pos, "action %s is given the state %s, which %s does not declare", action.Name, st.Name, manager.Name)
		}
	}
}

// ownTypes looks for generated types called like API types of the same package.
func (v *validator) ownTypes(manager *model.Manager) {
	kinds := []model.Kind{manager.Target}
	for _, st := range manager.States {
		kinds = append(kinds, st.Kind)
	}
	reported := map[string]bool{}
	for _, kind := range kinds {
		for _, name := range []string{kind.Type, kind.List} {
			if owner, ok := v.owners[name]; ok && kind.Package == v.pkg.Path && !reported[name] {
				reported[name] = true
				v.errorf(manager.Pos, "manager %s would generate %s, which is an API type of the same package: rename the manager", owner, name)
			}
		}
	}
}
