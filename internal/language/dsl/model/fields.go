// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "strings"

// A Field is a field of a kind that a manager reads.
type Field struct {
	Path []Step
	Text Text
}

// String returns the path as the JSON form has it: .spec.backends[].service.
func (f Field) String() string {
	var path strings.Builder
	for _, step := range f.Path {
		path.WriteString("." + step.Field)
		if step.Each {
			path.WriteString("[]")
		}
	}
	return path.String()
}

// FieldsOf returns the fields of a kind that the references and the selectors of the manager's
// states read, each once, in their order. The metadata of objects is none of them.
func (m *Manager) FieldsOf(kind Kind) []Field {
	var all []Field
	seen := map[string]bool{}
	add := func(of Kind, path []Step, text Text) {
		f := Field{path, text}
		if of.Key() != kind.Key() || len(path) == 0 || path[0].Field == "metadata" || seen[f.String()] {
			return
		}
		seen[f.String()] = true
		all = append(all, f)
	}
	var addValue func(value Value)
	addValue = func(value Value) {
		for _, part := range value.Parts {
			switch {
			case part.Ref == nil:
				continue
			case part.Ref.State != nil:
				add(part.Ref.State.Kind, part.Ref.Path, part.Ref.Text)
			default:
				add(m.Target, part.Ref.Path, part.Ref.Text)
			}
			if part.Ref.Default != nil {
				addValue(*part.Ref.Default)
			}
		}
	}
	for _, st := range m.States {
		for value := range st.values {
			addValue(value)
		}
		for _, selector := range st.Fields {
			add(st.Kind, selector.Path, selector.Text)
		}
		for _, r := range st.FieldWhere {
			add(st.Kind, r.Field.Path, r.Field.Text)
		}
	}
	return all
}
