// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/dsl/model"
)

// reference resolves `${target.A.B}` against the Go type of the target. It returns nil for a
// reference that is wrong, and for one that cannot be checked because the type of the target is not
// known.
func (m *managerScope) reference(ref *ast.Ref) *model.Ref {
	root := ref.Path[0]
	if root.Text != "target" {
		hint := "references begin with target"
		if m.target != nil && m.target.hasField(root.Text) {
			hint = "write ${target." + ref.Name() + "}"
		} else if len(ref.Path) > 1 {
			hint = "write ${target." + strings.SplitN(ref.Name(), ".", 2)[1] + "}"
		}
		m.d.report(diag.NotTarget, root, fmt.Sprintf("unknown name %q in a reference", root.Text), hint)
		return nil
	}
	if len(ref.Path) == 1 {
		m.d.report(diag.TargetNotText, ref, "the target itself cannot be text", "name a field, as in ${target.Name}")
		return nil
	}
	if m.target == nil {
		return nil
	}
	walk := goWalk{current: m.target.obj.Type()}
	for i, name := range ref.Path[1:] {
		if problem := walk.step(name.Text); problem != nil {
			m.d.report(problem.code, name, problem.message, m.referenceHint(ref, i+1, problem))
			return nil
		}
	}
	if !m.target.Namespaced && isNamespace(walk.steps) {
		m.d.report(diag.NoTargetNamespace, ref,
			fmt.Sprintf("%s is cluster-scoped: its namespace is always empty", m.target.Kind.Kind), "name a namespace, or another field of the target")
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
		m.d.report(diag.TargetNotText, last, fmt.Sprintf("%s cannot be text: it is %s", ref.Name(), problem), textHint(walk.current, ref.Name()))
		return nil
	}
	return &model.Ref{Source: ref.Name(), Path: steps, Text: text}
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
		return ""
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
}

// referenceHint suggests another name: one with a near spelling, the Go name for a JSON name, or
// the field of a getter.
func (m *managerScope) referenceHint(ref *ast.Ref, at int, problem *walkProblem) string {
	got := ref.Path[at].Text
	if problem.code == diag.MethodReference {
		field := strings.TrimPrefix(got, "Get")
		if slices.Contains(problem.fields, field) {
			return "write " + withName(ref, at, field)
		}
		return "name a field: methods are not called"
	}
	names := m.goNames(ref)
	if m.target.Unstructured() {
		names = m.keys(ref)
	}
	if names != nil {
		return "write ${target." + strings.Join(names, ".") + "}"
	}
	for _, f := range problem.fields {
		if strings.EqualFold(f, got) {
			return "write " + withName(ref, at, f)
		}
	}
	return diag.DidYouMean(got, problem.fields)
}

// withName returns the reference with another name in one place.
func withName(ref *ast.Ref, at int, name string) string {
	words := slices.Clone(ref.Path)
	words[at].Text = name
	return (&ast.Ref{Path: words}).String()
}

// goNames reads the whole reference as names of the JSON form and returns the names of the Go
// fields, if that works.
func (m *managerScope) goNames(ref *ast.Ref) []string {
	walk := goWalk{current: m.target.obj.Type()}
	for _, w := range ref.Path[1:] {
		if _, ok := walk.jsonStep(w.Text); !ok && walk.step(w.Text) != nil {
			return nil
		}
	}
	names := make([]string, len(walk.steps))
	for i, step := range walk.steps {
		names[i] = step.Field
	}
	return names
}

// keys reads the whole reference as names of Go fields and returns the keys of the unstructured
// target, if that works.
func (m *managerScope) keys(ref *ast.Ref) []string {
	var names []string
	for _, w := range ref.Path[1:] {
		names = append(names, uncapitalized(w.Text))
	}
	for _, way := range [][]string{names, slices.Concat([]string{"metadata"}, names)} {
		walk := goWalk{current: m.target.obj.Type()}
		if !slices.ContainsFunc(way, func(name string) bool { return walk.step(name) != nil }) {
			return way
		}
	}
	return nil
}
