// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// condition checks the selectors kind and group, which say that the state is meant only if what the
// reference has is the kind, or the group, of the state.
func (s *stateScope) condition(sel *ast.Selector, family string) {
	if !s.hasText(sel, fmt.Sprintf("write %s=${target.FIELD}", family), true) {
		return
	}
	if len(sel.Value.Parts) != 1 || sel.Value.Parts[0].Ref == nil {
		s.d.report(diag.BadCondition, sel.Value, fmt.Sprintf("%s= compares the %s of the state with a reference", family, family),
			fmt.Sprintf("write %s=${target.FIELD}, or remove it: the state has its %s already", family, family))
		return
	}
	if value, ok := s.mayBeOfElements(sel.Value, family); ok {
		s.out.Conditions = append(s.out.Conditions, model.Selector{Key: family, Value: value, Pos: s.d.position(sel.Key)})
	}
}

// mayBeOfElements returns the value of a selector that may refer to the elements of a list.
func (s *stateScope) mayBeOfElements(v ast.Value, family string) (model.Value, bool) {
	s.each, s.family = s.node.List, family
	s.needed = !slices.ContainsFunc(v.Parts, func(p ast.Part) bool { return p.Ref == nil })
	value, ok := s.value(v)
	s.each, s.family, s.needed = false, "", false
	return value, ok
}

// namesNoElements reports whether a name refers to no elements, in a state that refers to some.
// It is false for a name with a mistake.
func namesNoElements(name *ast.Selector, out *model.State) bool {
	if name == nil || out.ObjectName == nil {
		return name == nil
	}
	written := slices.DeleteFunc(slices.Clone(name.Value.Parts), func(p ast.Part) bool { return p.Ref == nil })
	resolved := slices.DeleteFunc(slices.Clone(out.ObjectName.Parts), func(p model.Part) bool { return p.Ref == nil })
	return len(written) == len(resolved) && out.ObjectName.Elements() == nil
}

// noteLeftOut notes a name that has a namespace or a kind beside it which the state does not ask
// for: the object may be another one than that which is named.
func (s *stateScope) noteLeftOut() {
	if s.name == nil || s.kind == nil || s.target == nil || len(s.name.Value.Parts) != 1 || s.name.Value.Parts[0].Ref == nil {
		return
	}
	ref := s.name.Value.Parts[0].Ref
	last := len(ref.Path) - 1
	if last < 2 || ref.Path[0].Text != "target" || !strings.EqualFold(ref.Path[last].Text, "name") {
		return
	}
	walk := goWalk{current: s.target.obj.Type()}
	for _, word := range ref.Path[1:last] {
		name, key, brackets := word.Step()
		if walk.step(name) != nil || brackets && !walk.brackets(key) {
			return
		}
	}
	own := goWalk{current: walk.current, steps: slices.Clone(walk.steps), embedding: walk.embedding}
	if own.step(ref.Path[last].Text) != nil || model.IsMetadata(own.steps, "Name") {
		return
	}
	defaults := map[string]string{"kind": s.kind.Kind.Kind, "namespace": s.target.namespacePath()}
	given := map[string]bool{"kind": s.seen["kind"] != nil, "namespace": s.namespace != nil || !s.kind.Namespaced}
	for _, family := range []string{"kind", "namespace"} {
		field := family
		if !s.target.Unstructured() {
			field = strings.ToUpper(family[:1]) + family[1:]
		}
		beside := goWalk{current: walk.current, steps: slices.Clone(walk.steps), optional: walk.optional}
		if given[family] || beside.step(field) != nil || !isText(deref(beside.current)) {
			continue
		}
		with := &ast.Ref{Path: slices.Clone(ref.Path)}
		if with.Path[last].Text = field; beside.optional || isPointer(beside.current) {
			with.Optional, with.Default.Text = true, defaults[family]
		}
		s.d.report(diag.LeftOut, s.name.Key, fmt.Sprintf("the name has a %s beside it, which the state leaves out", family),
			fmt.Sprintf("add %s=%s", family, with))
	}
}
