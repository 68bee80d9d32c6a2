// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// A demand is what a selector requires of the value of a label or an annotation.
type demand struct {
	sel    *ast.Selector
	op     operator
	values []*ast.Value
}

// absence reports whether an object without the key satisfies the demand.
func (o operator) absence() bool {
	return o.only(selection.DoesNotExist, selection.NotEquals, selection.NotIn)
}

// demand adds a demand to those on the same key, and reports the first one that contradicts the ones
// before.
func (s *stateScope) demand(key string, d demand) {
	s.repeated(d.values)
	before := s.demands[key]
	s.demands[key] = append(before, d)
	if len(before) == 0 || s.contradicted[key] {
		return
	}
	with := before[0]
	for _, other := range before {
		if excludes(other, d) || excludes(d, other) {
			with = other
			break
		}
	}
	if !unsatisfiable(s.demands[key]) {
		return
	}
	s.contradicted[key] = true
	s.d.report(diag.NeverSelects, d.sel, fmt.Sprintf("no object satisfies this and the other selectors of %s", key), "remove one of them",
		s.d.related(with.sel, "contradicted by this"))
}

// excludes reports whether one demand is that the key is missing, and the other that it is there.
func excludes(a, b demand) bool {
	return a.op.only(selection.DoesNotExist) && !b.op.absence()
}

// unsatisfiable reports whether no value satisfies all of the demands on a key. A reference can have
// any value, but has the same one everywhere.
func unsatisfiable(demands []demand) bool {
	var allowed []*ast.Value // of the demands for one of some values
	limited := false
	for i, d := range demands {
		if slices.ContainsFunc(demands[:i], func(other demand) bool { return excludes(other, d) || excludes(d, other) }) {
			return true
		}
		if !d.op.only(selection.Equals, selection.In) {
			continue
		}
		if !limited {
			limited, allowed = true, slices.Clone(d.values)
			continue
		}
		allowed = slices.DeleteFunc(allowed, func(v *ast.Value) bool {
			return !slices.ContainsFunc(d.values, func(w *ast.Value) bool { return mayEqual(v, w) })
		})
	}
	for _, d := range demands {
		if d.op.only(selection.NotEquals, selection.NotIn) {
			allowed = slices.DeleteFunc(allowed, func(v *ast.Value) bool {
				return slices.ContainsFunc(d.values, func(w *ast.Value) bool { return shown(*v) == shown(*w) })
			})
		}
	}
	return limited && len(allowed) == 0
}

// mayEqual reports whether two values can be the same text.
func mayEqual(v, w *ast.Value) bool {
	refers := func(p ast.Part) bool { return p.Ref != nil }
	return shown(*v) == shown(*w) || slices.ContainsFunc(v.Parts, refers) || slices.ContainsFunc(w.Parts, refers)
}

// repeated warns of a value that is in a set twice.
func (s *stateScope) repeated(values []*ast.Value) {
	for i, v := range values {
		first := slices.IndexFunc(values, func(w *ast.Value) bool { return shown(*v) == shown(*w) })
		if first < i {
			s.d.report(diag.RepeatedValue, v, fmt.Sprintf("the value %s is in the set twice", shown(*v)), "remove one of them",
				s.d.related(values[first], "first given here"))
		}
	}
}

// saysWhich reports whether a selector says which object a single one is: what an object lacks does
// not. It is true for a selector that was reported as wrong and may be meant to.
func saysWhich(sel *ast.Selector) bool {
	key, op := operatorOf(sel)
	return !slices.Contains([]string{"owned", "namespace", "kind", "group"}, key) && !(op.absence() && strings.Contains(key, "/"))
}
