// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// anotherName is the hint for a name that is declared twice.
const anotherName = "give one of them another name, or remove it"

// managerScope is a manager while it is checked.
type managerScope struct {
	*checker
	d      *document
	model  *model.Manager
	target *kindType // nil when the kind of the target is not known
	states map[string]*declaredState
	order  []*declaredState
	// declared are the names of all states, also of those that are checked later.
	declared []string
}

// A declaredState is a state with the place of its declaration.
type declaredState struct {
	model *model.State
	kind  *kindType // nil when it is not known
	name  ast.Word
	used  bool
}

// manager checks one decl.
func (c *checker) manager(d *document, decl *ast.Decl) *model.Manager {
	c.declareManager(d, decl.Name)
	m := &managerScope{
		checker: c,
		d:       d,
		target:  c.kind(d, decl.Kind),
		states:  map[string]*declaredState{},
		model:   &model.Manager{Name: decl.Name.Text, Doc: docLines(decl.Doc), Pos: d.position(decl.Name)},
	}
	if m.target != nil {
		m.model.Target = m.target.Kind
		m.needsList(m.target, decl.Kind, "to be watched")
	}
	for s := range ast.All[*ast.State](decl) {
		m.declared = append(m.declared, s.Name.Text)
	}
	for s := range ast.All[*ast.State](decl) {
		m.declareState(s)
	}
	m.actions(decl)
	if len(m.model.Actions) == 0 {
		d.unused = append(d.unused, d.diagnostic(diag.EmptyManager, decl.Name, fmt.Sprintf("%s has no actions", decl.Name.Text), "declare one: action { NAME() }"))
	}
	for _, s := range m.order {
		m.model.States = append(m.model.States, s.model)
		if !s.used {
			d.unused = append(d.unused, d.diagnostic(diag.UnusedState, s.name, fmt.Sprintf("state %s is not used", s.name.Text), "give it to an action, or remove it"))
		}
	}
	return m.model
}

// needsList reports a kind without a list type where one is needed.
func (m *managerScope) needsList(kind *kindType, w ast.Word, why string) {
	if kind.List == "" {
		message := fmt.Sprintf("%s has no type %sList, which %s needs %s", kind.Package, kind.Type, kind.Type, why)
		if problem := listProblem(kind.obj); problem != "" {
			message = fmt.Sprintf("%s.%sList, which %s needs %s, %s", kind.Package, kind.Type, kind.Type, why, problem)
		}
		m.d.report(diag.NoListType, w, message,
			fmt.Sprintf("a list type is a struct with a field Items []%s and the method DeepCopyObject", kind.Type))
	}
}

func (c *checker) declareManager(d *document, name ast.Word) {
	if first, ok := c.managers[name.Text]; ok {
		d.report(diag.DuplicateName, name, fmt.Sprintf("manager %s is declared twice", name.Text), anotherName, first.related()...)
		return
	}
	d.exported(name, "manager")
	c.managers[name.Text] = &declaredManager{scopedName: scopedName{d, name}}
	c.order = append(c.order, name.Text)
}

// declareState checks a state. It declares the state even if it is wrong, so that the actions that
// use it are not reported as well.
func (m *managerScope) declareState(s *ast.State) {
	state := m.state(s)
	if first, ok := m.states[s.Name.Text]; ok {
		m.d.report(diag.DuplicateName, s.Name, fmt.Sprintf("state %s is declared twice", s.Name.Text), anotherName,
			(&scopedName{m.d, first.name}).related()...)
		return
	}
	m.d.stateName(s.Name)
	for _, spelling := range []string{capitalized(s.Name.Text), uncapitalized(s.Name.Text)} {
		if other, ok := m.states[spelling]; ok {
			m.d.report(diag.NameCollision, s.Name,
				fmt.Sprintf("states %s and %s differ only in the case of their first letter", other.name.Text, s.Name.Text),
				"give one of them another name", (&scopedName{m.d, other.name}).related()...)
		}
	}
	m.states[s.Name.Text] = state
	m.order = append(m.order, state)
}

func (m *managerScope) actions(decl *ast.Decl) {
	seen := map[string]*scopedName{}
	for a := range ast.All[*ast.Action](decl) {
		if first, ok := seen[a.Name.Text]; ok {
			m.d.report(diag.DuplicateName, a.Name, fmt.Sprintf("action %s is declared twice", a.Name.Text), anotherName, first.related()...)
		} else {
			seen[a.Name.Text] = &scopedName{m.d, a.Name}
			m.actionName(a.Name)
			m.managers[decl.Name.Text].actions = append(m.managers[decl.Name.Text].actions, a.Name.Text)
		}
		m.model.Actions = append(m.model.Actions, m.action(a))
	}
}

func (m *managerScope) actionName(name ast.Word) {
	if m.d.exported(name, "action") && slices.Contains(hookMethods, name.Text) {
		m.d.report(diag.NameCollision, name, fmt.Sprintf("%s is a method of the hook that every manager has", name.Text),
			"give the action another name")
	}
}

func (m *managerScope) action(a *ast.Action) *model.Action {
	result := &model.Action{Name: a.Name.Text, Doc: docLines(a.Doc), Pos: m.d.position(a.Name)}
	given := map[string]*scopedName{}
	for _, arg := range a.Args {
		if first, ok := given[arg.Name.Text]; ok {
			related := first.related()
			related[0].Message = "first given here"
			m.d.report(diag.RepeatedArgument, arg.Name, fmt.Sprintf("state %s is given twice to action %s", arg.Name.Text, a.Name.Text),
				"remove one of them", related...)
			continue
		}
		given[arg.Name.Text] = &scopedName{m.d, arg.Name}
		state, ok := m.states[arg.Name.Text]
		if !ok {
			m.unknownState(arg.Name, a.Name.Text)
			continue
		}
		state.used = true
		result.States = append(result.States, state.model)
	}
	return result
}

func (m *managerScope) unknownState(name ast.Word, action string) {
	names := make([]string, len(m.order))
	for i, s := range m.order {
		names[i] = s.name.Text
	}
	hint := printable.DidYouMean(name.Text, names)
	switch {
	case hint != "":
	case len(names) == 0:
		hint = "this manager declares no states"
	default:
		hint = someOf("state", names)
	}
	m.d.report(diag.UnknownState, name, fmt.Sprintf("unknown state %q in action %s", name.Text, action), hint)
}
