// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"cmp"
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// A typedView is a type for the objects of a kind that has no Go type. It embeds the object, so
// that nothing of it is lost, and has a method for each field that the manager reads.
type typedView struct {
	Name, Kind string
	// One and Many are functions that make it of an object, and of several ones. They are empty if no
	// state needs them.
	One, Many string
	Fields    []typedField
}

// A typedField is the method for a field.
type typedField struct {
	Method, Path string
	Result       string // the Go type of the field, or of an element of a list
	Open         []string
	Value        string // an expression for the value, and whether it is set
	Close        string
}

// IsList reports whether the field is that of each element of a list.
func (f typedField) IsList() bool { return len(f.Open) > 0 }

// typed returns the type for the objects of a kind without a Go type, which is made once.
func (w *managerWriter) typed(kind model.Kind) *typedView {
	for _, t := range w.view.Typed {
		if t.Kind == kind.APIVersion()+"/"+kind.Kind {
			return t
		}
	}
	t := &typedView{
		Name: w.names.scope.take(exported(w.manager.Name)+kind.Kind, "View"),
		Kind: kind.APIVersion() + "/" + kind.Kind,
	}
	methods := newScope(reserved...)
	for _, field := range w.manager.FieldsOf(kind) {
		t.Fields = append(t.Fields, newTypedField(field, methods))
	}
	slices.SortStableFunc(t.Fields, func(a, b typedField) int { return cmp.Compare(a.Method, b.Method) })
	w.view.Typed = append(w.view.Typed, t)
	return t
}

// reserved are the names that a type which embeds an object has already.
var reserved = func() []string {
	names := []string{"Unstructured", "Object"}
	for method := range reflect.TypeFor[*unstructured.Unstructured]().Methods() {
		names = append(names, method.Name)
	}
	return names
}()

func newTypedField(field model.Field, methods scope) typedField {
	name := camel(field.String())
	if !token.IsExported(name) || !token.IsIdentifier(name) {
		name = "Field" + name
	}
	f := typedField{Method: methods.take(name, "Field"), Path: field.String(), Result: "string"}
	var each eachView
	root, path := "&o.Unstructured", field.Path
	for {
		list, rest := firstList(path)
		if list == nil {
			break
		}
		each.open(root, list, "")
		root, path = element, rest
		f.Close += "}\n"
	}
	if len(path) == 0 {
		path = []model.Step{{Key: true}} // see state.Elements
	}
	f.Open = each.Open
	var keys strings.Builder
	for _, step := range path {
		keys.WriteString(", " + strconv.Quote(step.Field))
	}
	object := root + ".Object"
	if root != element {
		object = "o.Object"
	}
	switch field.Text {
	case model.TextInt, model.TextUint:
		f.Result, f.Value = "int64", fmt.Sprintf("unstructured.NestedInt64(%s%s)", object, &keys)
	case model.TextBool:
		f.Result, f.Value = "bool", fmt.Sprintf("unstructured.NestedBool(%s%s)", object, &keys)
	default:
		f.Value = fmt.Sprintf("state.Field(%s%s)", root, &keys)
	}
	return f
}

// firstList splits a path after the first list that it leads through. The first part is nil if
// there is none.
func firstList(path []model.Step) (list, rest []model.Step) {
	i := slices.IndexFunc(path, func(step model.Step) bool { return step.Each })
	if i < 0 {
		return nil, path
	}
	return path[:i+1], path[i+1:]
}

// addTyped gives a state of a kind without a Go type the type for its objects.
func (w *managerWriter) addTyped(view *stateView, st *model.State) {
	if !st.Kind.Unstructured() {
		return
	}
	t := w.typed(st.Kind)
	private := unexported(t.Name)
	if st.List {
		if t.Many == "" {
			t.Many = w.names.scope.take(private+"s", "Of")
		}
		view.Result, view.Typed = "[]"+t.Name, t.Many
		return
	}
	if t.One == "" {
		t.One = w.names.scope.take(private+"Of", "View")
	}
	view.Result, view.Typed = "*"+t.Name, t.One
}
