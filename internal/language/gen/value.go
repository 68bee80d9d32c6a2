// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// A guard is a condition under which a value cannot be read, as that a pointer on the way is nil, and
// the error for it.
type guard struct {
	Cond, Err string
	// Before is what is done instead of a test: a variable gets the value of a reference, or its
	// default.
	Before string
	// inElement is true for a pointer of an element of a list.
	inElement bool
}

// Statement returns the guard as Go, with the statement that follows when there is no value.
func (g guard) Statement(then string) string {
	if g.Before != "" {
		return g.Before
	}
	return "if " + g.Cond + " {\n" + then + "\n}"
}

// isCertain reports whether no guard decides that nothing is selected.
func isCertain(guards []guard) bool {
	return !slices.ContainsFunc(guards, func(g guard) bool { return g.Before == "" })
}

// nothing is the error of a selection that refers to what another state does not have.
const nothing = "state.ErrNothing"

// pathExpr returns the Go for the field at the end of a path, and the guards of its pointers.
func pathExpr(root string, path []model.Step, text model.Text) (expr string, guards []guard) {
	if len(path) > 0 && path[0].Key {
		return keyExpr(root, path)
	}
	expr = root
	last := len(path) == 0 // an element, of which there is a pointer
	for _, step := range path {
		if step.MapKey {
			guards = append(guards, guard{
				Cond: fmt.Sprintf("_, ok := %s[%q]; !ok", expr, step.Field), Err: fmt.Sprintf("errors.New(%q)", expr+"["+step.Field+"] is not set"),
			})
			expr += "[" + strconv.Quote(step.Field) + "]"
			continue
		}
		expr += "." + step.Field
		if last = step.Pointer; last {
			guards = append(guards, guard{Cond: expr + " == nil", Err: fmt.Sprintf("errors.New(%q)", expr+" is nil")})
		}
	}
	if last && text != model.TextStringer {
		expr = "*" + expr
	}
	return textExpr(expr, text), guards
}

// keyExpr is [pathExpr] for an unstructured object.
func keyExpr(root string, path []model.Step) (expr string, guards []guard) {
	if model.IsMetadata(path, "Name") || model.IsMetadata(path, "Namespace") {
		return root + ".Get" + exported(path[1].Field) + "()", nil
	}
	name, keys := root, root
	for _, step := range path {
		if step.MapKey {
			name += "[" + step.Field + "]"
		} else {
			name += "." + step.Field
		}
		keys += ", " + strconv.Quote(step.Field)
	}
	field := "state.Field(" + keys + ")"
	return "*" + field, []guard{{Cond: field + " == nil", Err: fmt.Sprintf("errors.New(%q)", name+" is not set")}}
}

// textExpr returns the Go that makes a string of expr.
func textExpr(expr string, text model.Text) string {
	switch text {
	case model.TextConvert:
		return "string(" + expr + ")"
	case model.TextInt:
		return "strconv.FormatInt(int64(" + expr + "), 10)"
	case model.TextUint:
		return "strconv.FormatUint(uint64(" + expr + "), 10)"
	case model.TextBool:
		return "strconv.FormatBool(bool(" + expr + "))"
	case model.TextStringer:
		return expr + ".String()"
	default:
		return expr
	}
}

// valueExpr returns the Go for a value, and the guards of its references.
func valueExpr(value model.Value) (expr string, guards []guard) {
	var terms []string
	for _, part := range value.Parts {
		if part.Ref == nil {
			terms = append(terms, strconv.Quote(part.Literal))
			continue
		}
		root, path := rootOf(part.Ref.State), part.Ref.Path
		if list, rest := model.Each(path); list != nil {
			if root, path = element, rest; len(rest) == 0 && list[0].Key {
				path = []model.Step{{Key: true}} // see state.Elements
			}
		}
		term, more := pathExpr(root, path, part.Ref.Text)
		if part.Ref.Default != nil {
			term, more = defaultExpr(root, path, part.Ref, term, more)
		}
		for _, g := range more {
			g.inElement = root == element
			if g.Before == "" && (part.Ref.State != nil || part.Ref.Optional) {
				g.Err = nothing
			}
			guards = append(guards, g)
		}
		if part.Ref.Optional && part.Ref.MayBeEmpty() {
			guards = append(guards, guard{Cond: term + ` == ""`, Err: nothing, inElement: root == element})
		}
		terms = append(terms, term)
	}
	if len(terms) == 0 {
		return `""`, nil
	}
	return strings.Join(terms, " + "), guards
}

// defaultExpr returns the variable for a reference with a default, and what sets it.
func defaultExpr(root string, path []model.Step, ref *model.Ref, term string, guards []guard) (variable string, before []guard) {
	variable = root
	for _, step := range path {
		variable += camel(step.Field)
	}
	if variable == root {
		variable += "Text"
	}
	otherwise, before := valueExpr(*ref.Default)
	var conditions []string
	for _, g := range guards {
		if !strings.HasPrefix(g.Cond, "_, ok := ") { // what a map does not have is empty
			conditions = append(conditions, strings.TrimSuffix(g.Cond, " == nil")+" != nil")
		}
	}
	if ref.MayBeEmpty() {
		conditions = append(conditions, term+` != ""`)
	}
	set := fmt.Sprintf("%s := %s\nif %s {\n%s = %s\n}", variable, otherwise, strings.Join(conditions, " && "), variable, term)
	return variable, append(before, guard{Before: set})
}

// value returns the Go for a value, and adds its guards to those of the state.
func (s *stateView) value(value model.Value) string {
	expr, guards := valueExpr(value)
	s.guard(guards)
	return expr
}

func (s *stateView) guard(guards []guard) {
	for _, g := range guards {
		if !slices.Contains(s.Guards, g) {
			s.Guards = append(s.Guards, g)
		}
	}
}

// require is [stateView.value] for a selector that must not be empty.
func (s *stateView) require(selector string, value model.Value) string {
	expr := s.value(value)
	if !value.MayBeEmpty() {
		return expr
	}
	required := requiredView{Var: selector, Expr: expr, Err: fmt.Sprintf("errors.New(%q)", selector+"="+valueText(value)+" is empty")}
	if slices.ContainsFunc(value.Parts, func(p model.Part) bool { return p.Ref != nil && p.Ref.State != nil }) {
		required.Err = nothing
	}
	s.Required = append(s.Required, required)
	return selector
}

var plain = regexp.MustCompile(`^[-A-Za-z0-9._/]*$`)

// valueText returns a value as it is in a document, with quotes if it needs them.
func valueText(value model.Value) string {
	var text strings.Builder
	for _, part := range value.Parts {
		switch {
		case part.Ref != nil:
			fmt.Fprintf(&text, "${%s}", part.Ref.Source)
		case plain.MatchString(part.Literal):
			text.WriteString(part.Literal)
		default:
			text.WriteString(strconv.Quote(part.Literal))
		}
	}
	return text.String()
}
