// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"strings"
)

// A selectionLiteral is a composite literal of state.Selection; its parts are Go expressions.
type selectionLiteral struct {
	namespace, name    string
	labels, fields     []string
	where, annotations []string
	fieldWhere         []string
}

func (l *selectionLiteral) addLabel(key, value string) {
	l.labels = append(l.labels, fmt.Sprintf("%q: %s", key, value))
}

func (l *selectionLiteral) addField(key, value string) {
	l.fields = append(l.fields, key+": "+value)
}

// String returns the literal, on one line if it has few fields.
func (l *selectionLiteral) String() string {
	var lines []string
	add := func(field, value string) {
		if value != "" {
			lines = append(lines, field+": "+value)
		}
	}
	add("Namespace", l.namespace)
	add("Name", l.name)
	add("Labels", mapLiteral(l.labels))
	add("Fields", mapLiteral(l.fields))
	add("Where", requirementsLiteral(l.where))
	add("FieldWhere", requirementsLiteral(l.fieldWhere))
	add("Annotations", requirementsLiteral(l.annotations))
	if len(l.labels)+len(l.fields)+len(l.where)+len(l.fieldWhere)+len(l.annotations) == 0 {
		return "state.Selection{" + strings.Join(lines, ", ") + "}"
	}
	return "state.Selection{\n" + strings.Join(lines, ",\n") + ",\n}"
}

func mapLiteral(entries []string) string {
	switch len(entries) {
	case 0:
		return ""
	case 1:
		return "map[string]string{" + entries[0] + "}"
	default:
		return "map[string]string{\n" + strings.Join(entries, ",\n") + ",\n}"
	}
}
