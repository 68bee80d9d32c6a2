// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// referenceScope is a reference in a state while it is checked.
type referenceScope struct {
	*stateScope
	ref *ast.Ref
}

// reference resolves `${target.A.B}` against the Go type of the target, and `${STATE.A.B}` against
// that of a state above. It returns nil for a reference that is wrong, and for one that cannot be
// checked because the type is not known.
func (s *stateScope) reference(ref *ast.Ref) *model.Ref { return (&referenceScope{s, ref}).resolve() }

func (s *referenceScope) resolve() *model.Ref {
	m, ref, root := s.managerScope, s.ref, s.ref.Path[0]
	kind, from, what := m.target, (*model.State)(nil), "the target"
	if root.Text != "target" {
		state := s.referredTo()
		if state == nil {
			return nil
		}
		kind, from, what = state.kind, state.model, "state "+root.Text
	}
	if len(ref.Path) == 1 {
		m.d.report(diag.TargetNotText, ref, what+" itself cannot be text", fmt.Sprintf("name a field, as in ${%s.Name}", root.Text))
		return nil
	}
	if kind == nil {
		return nil
	}
	walk, ok := s.walk(kind)
	if !ok || !s.elements(from, walk.steps) {
		return nil
	}
	if !kind.Namespaced && isNamespace(walk.steps) {
		m.d.report(diag.NoTargetNamespace, ref,
			fmt.Sprintf("%s is cluster-scoped: its namespace is always empty", kind.Kind.Kind), "name a namespace, or another field of "+what)
		return nil
	}
	if walk.unset {
		m.d.report(diag.UnsetTargetField, ref.Path[len(ref.Path)-1],
			fmt.Sprintf("%s is empty: an object that has been read has neither Kind nor APIVersion", ref.Name()), "write the text itself")
		return nil
	}
	steps, text, problem := walk.text()
	if problem != "" {
		last := ref.Path[len(ref.Path)-1]
		hint := textHint(walk.current, ref.Name())
		if _, ok := walk.current.Underlying().(*types.Slice); ok && s.each && from == nil {
			hint = eachHint(ref, len(ref.Path)-1)
		}
		if walk.isMap() {
			hint = keyHint(ref, len(ref.Path)-1, "KEY")
		}
		m.d.report(diag.TargetNotText, last, fmt.Sprintf("%s cannot be text: it is %s", ref.Name(), problem), hint)
		return nil
	}
	out := &model.Ref{Source: ref.Source(), State: from, Optional: ref.Optional && ref.Default.Text == "", Path: steps, Text: text}
	if ref.Default.Text != "" {
		if out.Default = s.defaultOf(); out.Default == nil {
			return nil
		}
	}
	s.optional(out, walk.optional)
	return out
}

// walk follows the path of a reference, and reports whether there is such a field.
func (s *referenceScope) walk(kind *kindType) (goWalk, bool) {
	ref := s.ref
	walk := goWalk{current: kind.obj.Type()}
	for i, word := range ref.Path[1:] {
		field, key, brackets := word.Step()
		if problem := walk.step(field); problem != nil {
			hint := kind.referenceHint(ref, i+1, problem)
			if _, list := walk.current.Underlying().(*types.Slice); list && s.each {
				hint = eachHint(ref, i)
			}
			if walk.isMap() {
				hint = keyHint(ref, i, field)
			}
			s.d.report(problem.code, word, problem.message, hint)
			return walk, false
		}
		switch {
		case brackets && key == "" && !walk.elements():
			s.d.report(diag.BadElements, word, fmt.Sprintf("%s is no list", field), "write it without []")
			return walk, false
		case key != "" && !walk.key(key):
			s.d.report(diag.BadMapKey, word, fmt.Sprintf("%s is %s, and only the texts of a map have keys", field, describeType(deref(walk.current))),
				"end the reference before the brackets, or name another field")
			return walk, false
		}
	}
	return walk, true
}

// keyHint says how to refer to what the map at a place of a reference has for a key.
func keyHint(ref *ast.Ref, at int, key string) string {
	words := slices.Clone(ref.Path[:at+1])
	words[at].Text += "[" + key + "]"
	return "write " + (&ast.Ref{Path: words, Optional: ref.Optional, Default: ref.Default}).String()
}

// defaultOf returns what stands for an empty reference: a text, or a field of the target. It is nil
// if that is wrong.
func (s *referenceScope) defaultOf() *model.Value {
	ref := s.ref
	text, span := ref.Default.Text, ref.Default.Range
	if first, ok := s.defaults[ref.Name()]; ok && first != text {
		s.d.report(diag.BadDefault, ref.Default, fmt.Sprintf("%s has the default %s above", ref.Name(), first), "write the same default everywhere in a state")
		return nil
	}
	s.defaults[ref.Name()] = text
	root, _, path := strings.Cut(text, ".")
	if _, state := s.states[root]; path && state {
		s.d.report(diag.BadDefault, ref.Default, "a default is a text or a field of the target, and not of another state", "declare a state for each of the two")
		return nil
	}
	if root != "target" {
		return &model.Value{Parts: []model.Part{{Literal: text}}}
	}
	at, inner := span.Start, &ast.Ref{Range: span}
	for name := range strings.SplitSeq(text, ".") {
		inner.Path = append(inner.Path, ast.Word{Text: name, Range: ast.Range{Start: at, End: at + len(name)}})
		at += len(name) + 1
	}
	each := s.each
	s.each, s.inDefault = false, true
	defer func() { s.each, s.inDefault = each, false }()
	if out := s.reference(inner); out != nil {
		return &model.Value{Parts: []model.Part{{Ref: out}}}
	}
	return nil
}

// optional warns of a question mark for what is never empty, and notes the references to optional
// fields of the target that have none.
func (s *referenceScope) optional(out *model.Ref, omittable bool) {
	ref := s.ref
	list, _ := model.Each(out.Path)
	what := ref.Name()
	switch {
	case out.State != nil || s.inDefault:
	case out.Optional && list != nil:
		s.d.report(diag.NeverEmpty, ref, "elements that name no object are left out without a ?", "write ${"+what+"}")
	case ref.Optional && !out.MayBeEmpty() && !out.MayBeUnset():
		s.d.report(diag.NeverEmpty, ref, what+" is never empty", "write ${"+what+"}")
	case ref.Optional || !omittable:
	case list != nil:
		s.noteElements()
	case out.MayBeUnset() || s.needed && out.MayBeEmpty():
		then := "nil"
		if s.node.List {
			then = "empty"
		}
		s.d.report(diag.MayBeEmpty, ref, fmt.Sprintf("%s is optional: while it is empty, every action with the state %s fails", what, s.node.Name.Text),
			fmt.Sprintf("write ${%s?} if the state is to be %s then%s", what, then, s.defaultHint()))
	}
}

// defaultHint says how to give an optional reference in some selectors a default.
func (s *referenceScope) defaultHint() string {
	what := s.ref.Name()
	switch {
	case s.family == "kind" && s.kind != nil:
		return fmt.Sprintf(", or ${%s?%s} if that means %s", what, s.kind.Kind.Kind, s.kind.Kind.Kind)
	case s.family == "namespace" && s.target != nil && s.target.Namespaced:
		return fmt.Sprintf(", or ${%s?%s} for the namespace of the target", what, s.target.namespacePath())
	}
	return ""
}

// namespacePath is the reference to the namespace of the target.
func (k *kindType) namespacePath() string {
	if k.Unstructured() {
		return "target.metadata.namespace"
	}
	return "target.Namespace"
}

// noteElements notes a namespace or kind of elements that need not have it.
func (s *referenceScope) noteElements() {
	if hint, ok := strings.CutPrefix(s.defaultHint(), ", or "); ok {
		s.d.report(diag.MayBeEmpty, s.ref, fmt.Sprintf("%s is optional: elements without it name no object", s.ref.Name()), "write "+hint)
	}
}

// eachHint says how to refer to the elements of a list in the name of a list.
func eachHint(ref *ast.Ref, at int) string {
	if text := ref.Path[at].Text; !strings.HasSuffix(text, "]") {
		return fmt.Sprintf("write %s for one object for each element", withName(ref, at, text+"[]"))
	}
	return "refer to another field: a list in a list has no elements with names"
}

// elements reports whether a reference may lead through the elements of a list, if it does: in the
// name of a list, and for the same list as the other references.
func (s *referenceScope) elements(from *model.State, steps []model.Step) bool {
	list, _ := model.Each(steps)
	problem, hint := "", "select by name=, and make the state a list: []"+s.node.Kind.Text
	switch {
	case list == nil:
		return true
	case !s.each:
		problem = "[] is for the name of a list, which has one object for each element"
	case from != nil:
		problem, hint = "[] is for lists of the target", "select by what all of the objects have in common"
	case s.list != nil && !slices.Equal(list, s.list):
		problem, hint = "the references are to elements of two lists", "declare a state for each of the lists"
	}
	if problem != "" {
		s.d.report(diag.BadElements, s.ref, problem, hint)
		return false
	}
	s.list = list
	return true
}

// referredTo returns the state that a reference begins with, or nil if it begins with no state that
// is one object and is declared above.
func (s *referenceScope) referredTo() *declaredState {
	ref, root := s.ref, s.ref.Path[0]
	state, ok := s.states[root.Text]
	switch {
	case root.Text == s.node.Name.Text:
		s.d.report(diag.NotTarget, root, fmt.Sprintf("state %s refers to itself", root.Text), "refer to the target, or to a state above")
	case !ok && slices.Contains(s.declared, root.Text):
		s.d.report(diag.NotTarget, root, fmt.Sprintf("state %s is not declared above %s", root.Text, s.node.Name.Text),
			fmt.Sprintf("declare %s before the states that refer to it", root.Text))
	case !ok:
		hint := "references begin with target, or with a state above"
		if s.target != nil && s.target.hasField(root.Text) {
			hint = "write ${target." + ref.Name() + "}"
		} else if near, ok := printable.Near(root.Text, s.declared); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if len(ref.Path) > 1 {
			hint = "write ${target." + strings.SplitN(ref.Name(), ".", 2)[1] + "}"
		}
		s.d.report(diag.NotTarget, root, fmt.Sprintf("unknown name %q in a reference", root.Text), hint)
	case state.model.List:
		s.d.report(diag.NotTarget, root, fmt.Sprintf("state %s is a list, and a reference is to one object", root.Text),
			"select what all of them have in common, or declare a state for the one that is meant")
	default:
		state.used = true
		if state.kind != nil {
			s.needsList(state.kind, root, "to be watched")
		}
		return state
	}
	return nil
}

// isNamespace reports whether the steps lead to the namespace of the object itself.
func isNamespace(steps []model.Step) bool { return model.IsMetadata(steps, "Namespace") }

func (k *kindType) hasField(name string) bool {
	obj, _, _ := types.LookupFieldOrMethod(k.obj.Type(), true, k.obj.Pkg(), name)
	_, ok := obj.(*types.Var)
	return ok
}

// textHint lists the fields of a struct that can be text.
func textHint(t types.Type, name string) string {
	s, ok := deref(t).Underlying().(*types.Struct)
	if !ok || isTime(deref(t)) {
		return "refer to a text, an integer or a bool"
	}
	var fields []string
	for f := range s.Fields() {
		if _, problem := textOf(f.Type()); problem == "" && (f.Exported() || isKey(f)) {
			fields = append(fields, f.Name())
		}
	}
	if len(fields) == 0 || len(fields) > 5 {
		return "name one of its fields, as in ${" + name + ".FIELD}"
	}
	return "name one of its fields: " + listOf(fields)
}

// A walkProblem is the reason why a step cannot be taken.
type walkProblem struct {
	code    diag.Code
	message string
	// fields are the names that would have been possible.
	fields []string
	// leaf is true for a step from what has no fields, such as a text, a list or a map.
	leaf bool
}

// referenceHint suggests another name: one with a near spelling, the Go name for a JSON name, or
// the field of a getter.
func (k *kindType) referenceHint(ref *ast.Ref, at int, problem *walkProblem) string {
	got := ref.Path[at].Text
	if problem.code == diag.MethodReference {
		field := strings.TrimPrefix(got, "Get")
		if slices.Contains(problem.fields, field) {
			return "write " + withName(ref, at, field)
		}
		return "name a field: methods are not called"
	}
	names := k.goNames(ref)
	if k.Unstructured() {
		names = k.keys(ref)
	}
	if names != nil {
		return fmt.Sprintf("write ${%s.%s}", ref.Path[0].Text, strings.Join(names, "."))
	}
	for _, f := range problem.fields {
		if strings.EqualFold(f, got) {
			return "write " + withName(ref, at, f)
		}
	}
	if hint := printable.DidYouMean(got, problem.fields); hint != "" {
		return hint
	}
	if problem.leaf {
		return "end the reference before it"
	}
	return fieldsHint(problem.fields)
}

// withName returns the reference with another name in one place.
func withName(ref *ast.Ref, at int, name string) string {
	words := slices.Clone(ref.Path)
	words[at].Text = name
	return (&ast.Ref{Path: words, Optional: ref.Optional, Default: ref.Default}).String()
}

// goNames reads the whole reference as names of the JSON form and returns the names of the Go
// fields, if that works.
func (k *kindType) goNames(ref *ast.Ref) []string {
	walk := goWalk{current: k.obj.Type()}
	for _, w := range ref.Path[1:] {
		name, key, brackets := w.Step()
		if _, ok := walk.jsonStep(name); !ok && walk.step(name) != nil || brackets && !walk.brackets(key) {
			return nil
		}
	}
	var names []string
	for _, step := range walk.steps {
		switch {
		case step.MapKey:
			names[len(names)-1] += "[" + step.Field + "]"
		case step.Each:
			names = append(names, step.Field+"[]")
		default:
			names = append(names, step.Field)
		}
	}
	return names
}

// keys reads the whole reference as names of Go fields and returns the keys of the unstructured
// object, if that works.
func (k *kindType) keys(ref *ast.Ref) []string {
	var names []string
	for _, w := range ref.Path[1:] {
		names = append(names, uncapitalized(w.Text))
	}
	for _, way := range [][]string{names, slices.Concat([]string{"metadata"}, names)} {
		walk := goWalk{current: k.obj.Type()}
		if !slices.ContainsFunc(way, func(name string) bool {
			name, key, brackets := ast.Word{Text: name}.Step()
			return walk.step(name) != nil || brackets && !walk.brackets(key)
		}) {
			return way
		}
	}
	return nil
}
