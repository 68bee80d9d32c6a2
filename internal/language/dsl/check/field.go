// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"go/constant"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

const (
	// controllerField is a field that objects do not have: the name of the controlling owner, if
	// that is of the target's kind.
	controllerField = ".metadata.controller"
	nameField       = ".metadata.name"
	namespaceField  = ".metadata.namespace"
)

// field checks a selector fields/PATH=VALUE, or one with another operator.
func (s *stateScope) field(sel *ast.Selector, key string, op operator) {
	at := sel.Key.Start + strings.LastIndex(sel.Key.Text, key)
	span := ast.Range{Start: at, End: at + len(key)}
	out := model.Selector{Key: key, ControllerField: key == controllerField, Pos: s.d.position(sel.Key)}
	var end types.Type
	known := out.ControllerField
	switch {
	case !s.fieldPath(key, span):
	case key == namespaceField:
		s.d.report(diag.Contradiction, span, "the namespace is not selected by a field", "write namespace=VALUE")
	default:
		if key == nameField && op.only(selection.Equals) {
			s.nameField = sel
		}
		if s.kind != nil && !known {
			end, known = s.walkField(&out, span)
		}
	}
	isName := out.ControllerField || key == nameField
	hint := fmt.Sprintf("write fields/%s=VALUE", key)
	if !isName {
		hint += `, or ="" for an empty field`
	}
	set := sel.Set
	if sel.HasValue || isName && op.only(selection.Exists, selection.DoesNotExist) {
		if !s.hasText(sel, hint, isName) {
			return
		}
		set = []*ast.Value{&sel.Value}
	}
	var values []model.Value
	for _, v := range set {
		if v.Bad {
			return // reported by the scanner
		}
		value, ok := s.value(*v)
		if ok && known {
			s.fieldValue(*v, out, end)
		}
		values = append(values, value)
	}
	if !slices.ContainsFunc(set, func(v *ast.Value) bool { return len(v.Parts) == 0 }) { // an empty field may count as missing
		s.demand("fields/"+key, demand{sel, op, set})
	}
	if op.only(selection.Equals) {
		out.Value = values[0]
		s.out.Fields = append(s.out.Fields, out)
		return
	}
	if known {
		s.withoutIndex(sel)
	}
	s.out.FieldWhere = append(s.out.FieldWhere, model.FieldRequirement{Field: out, Operator: string(op), Values: values})
}

// fieldPath reports a path of the wrong form.
func (s *stateScope) fieldPath(key string, span ast.Range) bool {
	hint := ""
	switch {
	case strings.ContainsAny(key, "[]*"):
		hint = "fields in lists and maps cannot be selected"
	case !strings.HasPrefix(key, "."):
		hint = "write fields/." + key
	case key == "." || strings.Contains(key, "..") || strings.HasSuffix(key, "."):
		hint = "write names with one dot before each, as in .spec.nodeName"
	case strings.Contains(key, "/"):
		hint = "write dots between the names, as in .spec.nodeName"
	default:
		return true
	}
	s.d.report(diag.BadFieldPath, span, fmt.Sprintf("malformed field path %q", key), hint)
	return false
}

// walkField follows the path and returns the type at its end.
func (s *stateScope) walkField(out *model.Selector, span ast.Range) (types.Type, bool) {
	walk := goWalk{current: s.kind.obj.Type()}
	offset := span.Start
	way := ""
	for _, name := range strings.Split(out.Key, ".")[1:] {
		offset++ // the dot
		here := ast.Range{Start: offset, End: offset + len(name)}
		offset = here.End
		if what := collection(walk.current); what != "" {
			s.d.report(diag.FieldNotText, here, fmt.Sprintf("%s is %s: what is in it cannot be selected", way, what), anotherField)
			return nil, false
		}
		if _, ok := deref(walk.current).Underlying().(*types.Struct); !ok {
			s.d.report(diag.UnknownField, here, fmt.Sprintf("%s has no fields, so no %q", way, name), "end the path before it")
			return nil, false
		}
		names, ok := walk.jsonStep(name)
		if !ok {
			s.d.report(diag.UnknownField, here, fmt.Sprintf("%s has no field %q", typeName(deref(walk.current)), name), s.fieldHint(way, name, names))
			return nil, false
		}
		way += "." + name
	}
	if walk.unset {
		s.d.report(diag.UnsetField, span, fmt.Sprintf("objects in the cache have no %s", strings.TrimPrefix(out.Key, ".")), "remove it: the state has a kind")
		return nil, false
	}
	steps, text, problem := walk.text()
	if problem != "" {
		s.d.report(diag.FieldNotText, span, fmt.Sprintf("%s cannot be text: it is %s", out.Key, problem), jsonHint(walk.current, out.Key))
		return nil, false
	}
	out.Path, out.Text = steps, text
	return walk.current, true
}

func collection(t types.Type) string {
	switch deref(t).Underlying().(type) {
	case *types.Slice, *types.Array:
		return "a list"
	case *types.Map:
		return "a map"
	}
	return ""
}

func (s *stateScope) fieldHint(way, name string, names []string) string {
	if way == ".metadata" {
		names = append(slices.Clone(names), "controller")
	}
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return fmt.Sprintf("did you mean %q?", n)
		}
	}
	if hint := printable.DidYouMean(name, names); hint != "" {
		return hint
	}
	return fieldsHint(names)
}

// anotherField is the hint for a field by which nothing can be selected.
const anotherField = "select by another field, or by a label"

// fieldsHint says which fields there are.
func fieldsHint(names []string) string {
	if len(names) == 0 {
		return "nothing says which fields it has: refer to a field that the definition or the Go type declares"
	}
	slices.Sort(names)
	return someOf("field", slices.Compact(names))
}

// jsonHint lists the fields of a struct that can be text, by their JSON names.
func jsonHint(t types.Type, way string) string {
	s, ok := deref(t).Underlying().(*types.Struct)
	if !ok || isTime(deref(t)) {
		return anotherField
	}
	var names []string
	jsonIndex(s, "", &names, 0)
	var good []string
	for _, name := range names {
		walk := goWalk{current: t}
		if _, ok := walk.jsonStep(name); !ok {
			continue
		}
		if _, _, problem := walk.text(); problem == "" {
			good = append(good, way+"."+name)
		}
	}
	if len(good) == 0 || len(good) > 5 {
		return "select one of its fields, as in " + way + ".NAME"
	}
	return "select one of its fields: " + listOf(good)
}

// fieldValue checks a value without references against the type of the field.
func (s *stateScope) fieldValue(v ast.Value, out model.Selector, end types.Type) {
	if slices.ContainsFunc(v.Parts, func(p ast.Part) bool { return p.Ref != nil }) {
		return
	}
	text := sample(v)
	switch out.Text {
	case model.TextBool:
		if text != "true" && text != "false" {
			s.d.report(diag.BadFieldValue, v, fmt.Sprintf("%s is true or false, never %s", out.Key, shown(v)), "write true or false")
		}
	case model.TextInt:
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || strconv.FormatInt(n, 10) != text {
			s.d.report(diag.BadFieldValue, v, fmt.Sprintf("%s is an integer, never %s", out.Key, shown(v)), "write it in decimal, as in 80")
		}
	case model.TextUint:
		if n, err := strconv.ParseUint(text, 10, 64); err != nil || strconv.FormatUint(n, 10) != text {
			s.d.report(diag.BadFieldValue, v, fmt.Sprintf("%s is an integer that is not negative, never %s", out.Key, shown(v)), "write it in decimal, as in 80")
		}
	case model.TextConvert:
		s.likely(v, out.Key, end)
	}
	if out.Key == nameField || out.ControllerField {
		s.objectName(v)
	}
}

// likely warns of a value that is not one of the constants that the Go package has for the type of
// the field. It is not an error: the server may know more values than this version of the package.
func (s *stateScope) likely(v ast.Value, key string, end types.Type) {
	named, ok := types.Unalias(deref(end)).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return
	}
	p := s.packages[named.Obj().Pkg().Path()]
	text := sample(v)
	if p == nil || p.Types == nil || text == "" {
		return
	}
	values := constantsOf(p.Types, named.Obj().Name())
	if len(values) == 0 || slices.Contains(values, text) {
		return
	}
	hint := printable.DidYouMean(text, values)
	if hint == "" && len(values) <= 6 {
		hint = "the values are " + listOf(values)
	}
	s.d.report(diag.UnlikelyValue, v, fmt.Sprintf("%s is none of the values that %s has", shown(v), key), hint)
}

// constantsOf returns the values of the string constants of a type that are declared in its
// package, sorted.
func constantsOf(pkg *types.Package, typeName string) []string {
	var values []string
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || c.Val().Kind() != constant.String || !isNamed(c.Type(), pkg.Path(), typeName) {
			continue
		}
		values = append(values, constant.StringVal(c.Val()))
	}
	slices.Sort(values)
	return slices.Compact(values)
}
