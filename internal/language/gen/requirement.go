// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// requirementExprs returns the elements of a composite literal of requirements.
func requirementExprs(requirements []model.Requirement, expr func(model.Value) string) []string {
	var exprs []string
	for _, r := range requirements {
		var values []string
		for _, value := range r.Values {
			values = append(values, expr(value))
		}
		text := fmt.Sprintf("{Key: %q, Operator: %q", r.Key, r.Operator)
		if len(values) > 0 {
			text += ", Values: []string{" + strings.Join(values, ", ") + "}"
		}
		exprs = append(exprs, text+"}")
	}
	return exprs
}

// addFieldWhere adds the requirements on fields. Objects that are not read by their name are left
// out after they were listed.
func (w *managerWriter) addFieldWhere(view *stateView, l lookup, literal *selectionLiteral) {
	indexes := ""
	for _, r := range l.fieldWhere {
		index := w.index(l.state.Kind, r.Field)
		if !strings.Contains(view.Indexes+indexes+",", " "+index+",") {
			indexes += ", " + index
		}
		text := requirementExprs([]model.Requirement{{Operator: r.Operator, Values: r.Values}}, view.value)[0]
		literal.fieldWhere = append(literal.fieldWhere, strings.Replace(text, `Key: ""`, "Key: "+index+".Name", 1))
	}
	switch {
	case indexes == "":
	case l.byName():
		view.Indexes += indexes
	default:
		view.Items = "state.Having(selection.FieldWhere, " + view.Items + indexes + ")"
	}
}

// byNameOnly returns the lookup without what does not name the object.
func (l lookup) byNameOnly() lookup {
	l.labels, l.fields, l.where, l.annotations, l.fieldWhere = nil, nil, nil, nil, nil
	return l
}

func requirementsLiteral(exprs []string) string {
	switch len(exprs) {
	case 0:
		return ""
	case 1:
		return "[]state.Requirement{" + exprs[0] + "}"
	}
	return "[]state.Requirement{\n" + strings.Join(exprs, ",\n") + ",\n}"
}

// onlyWith returns an argument for the requirements that do not depend on the target, if there are
// any.
func onlyWith(l lookup) string {
	depends := func(r model.Requirement) bool {
		return slices.ContainsFunc(r.Values, func(v model.Value) bool {
			return slices.ContainsFunc(v.Parts, func(p model.Part) bool { return p.Ref != nil })
		})
	}
	text := func(v model.Value) string { expr, _ := valueExpr(v); return expr }
	only := selectionLiteral{
		where:       requirementExprs(slices.DeleteFunc(slices.Clone(l.where), depends), text),
		annotations: requirementExprs(slices.DeleteFunc(slices.Clone(l.annotations), depends), text),
	}
	if len(only.where)+len(only.annotations) == 0 {
		return ""
	}
	return ", " + only.String()
}
