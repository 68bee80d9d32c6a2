// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
)

// conditionGuards returns the guards of the selectors kind and group. Without the kind or the group
// that it must be, nothing is selected.
func conditionGuards(l lookup) []guard {
	var guards []guard
	for _, condition := range l.conditions {
		want := l.state.Kind.Kind
		if condition.Key == "group" {
			want = l.state.Kind.Group
		}
		expr, more := valueExpr(condition.Value)
		guards = append(guards, more...)
		each := condition.Value.Elements() != nil
		if condition.Value.MayBeEmpty() && !each {
			err := nothing
			if condition.Value.Parts[0].Ref.State == nil {
				err = fmt.Sprintf("errors.New(%q)", condition.Key+"="+valueText(condition.Value)+" is empty")
			}
			guards = append(guards, guard{Cond: expr + ` == ""`, Err: err})
		}
		guards = append(guards, guard{Cond: fmt.Sprintf("%s != %q", expr, want), Err: nothing, inElement: each})
	}
	return guards
}

// addEach adds the loop over the elements that name objects. An element without a namespace, where
// that is one of the element, names no object.
func (w *managerWriter) addEach(view *stateView, l lookup, literal *selectionLiteral) {
	beside := conditionGuards(l)
	if of := l.namespace.Value; of != nil && of.Elements() != nil {
		expr, guards := valueExpr(*of)
		literal.namespace = expr
		beside = append(beside, guards...)
		if of.MayBeEmpty() {
			beside = append(beside, guard{Cond: expr + ` == ""`, inElement: true})
		}
	}
	var guards []guard
	view.Each, guards = newEachView(*l.name, beside)
	view.None, literal.name = "nil", "name"
	view.guard(guards)
}
