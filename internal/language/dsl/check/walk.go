// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"go/token"
	"go/types"
	"reflect"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// A goWalk follows a path of fields, beginning at a struct.
type goWalk struct {
	current types.Type
	steps   []model.Step
	// embedding is the struct whose embedded field was the last step, and nil after other steps.
	embedding types.Type
	// unset is true when the last step was to a field of the object's own TypeMeta, which is empty
	// in a cache.
	unset bool
	// optional is true if a field on the way need not be set.
	optional bool
}

// deref returns what a pointer points to, and other types as they are.
func deref(t types.Type) types.Type {
	if p, ok := types.Unalias(t).Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

func isPointer(t types.Type) bool {
	_, ok := types.Unalias(t).Underlying().(*types.Pointer)
	return ok
}

// step steps to the field with the Go name.
func (w *goWalk) step(name string) *walkProblem {
	base := deref(w.current)
	s, ok := base.Underlying().(*types.Struct)
	if !ok {
		return &walkProblem{code: diag.UnknownTargetField, message: fmt.Sprintf("%s has no fields, so no %q", typeName(base), name), leaf: true}
	}
	obj, index, _ := types.LookupFieldOrMethod(base, true, packageOf(base), name)
	switch obj := obj.(type) {
	case *types.Func:
		return &walkProblem{code: diag.MethodReference, message: fmt.Sprintf("%s is a method of %s", name, typeName(base)), fields: fieldNames(s)}
	case *types.Var:
		if token.IsExported(name) || isKey(obj) {
			if hidden := hiddenPointer(s, index); hidden != "" {
				return &walkProblem{code: diag.UnknownTargetField, message: fmt.Sprintf("%s of %s is in the pointer %s, which is not exported", name, typeName(base), hidden)}
			}
			w.follow(s, index)
			return nil
		}
		return &walkProblem{code: diag.UnknownTargetField, message: fmt.Sprintf("field %s of %s is not exported", obj.Name(), typeName(base)), fields: fieldNames(s)}
	}
	return &walkProblem{code: diag.UnknownTargetField, message: fmt.Sprintf("%s has no field %q", typeName(base), name), fields: fieldNames(s)}
}

// elements steps to the elements of the list where the walk is, and reports whether it is at one.
func (w *goWalk) elements() bool {
	list, ok := w.current.Underlying().(*types.Slice)
	if !ok || len(w.steps) == 0 {
		return false
	}
	last := &w.steps[len(w.steps)-1]
	last.Each, last.Pointer = true, isPointer(list.Elem())
	w.current, w.embedding, w.optional = list.Elem(), nil, false // no list has no elements
	return true
}

// isMap reports whether the walk is at a map.
func (w *goWalk) isMap() bool {
	_, ok := deref(w.current).Underlying().(*types.Map)
	return ok
}

// key steps to what the map where the walk is has for a key, and reports whether it is at a map of
// texts.
func (w *goWalk) key(key string) bool {
	m, ok := deref(w.current).Underlying().(*types.Map)
	if !ok || len(w.steps) == 0 || isPointer(w.current) || !isText(m.Key()) || !isText(m.Elem()) {
		return false
	}
	w.steps = append(w.steps, model.Step{Field: key, MapKey: true, Key: w.steps[len(w.steps)-1].Key})
	w.current, w.embedding, w.optional = m.Elem(), nil, true
	return true
}

// isText reports whether a type is a string, or made of it.
func isText(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// brackets steps to what the brackets after a name stand for: the elements of a list, or what a map
// has for a key. It reports whether there is such a thing.
func (w *goWalk) brackets(key string) bool {
	if key == "" {
		return w.elements()
	}
	return w.key(key)
}

// hiddenPointer returns the embedded pointer on the way to a promoted field that cannot be tested
// for nil from outside its package, because its name is not exported.
func hiddenPointer(s *types.Struct, index []int) string {
	for _, n := range index[:len(index)-1] {
		f := s.Field(n)
		if isPointer(f.Type()) && !f.Exported() {
			return f.Name()
		}
		s, _ = deref(f.Type()).Underlying().(*types.Struct)
	}
	return ""
}

// follow follows an index path. It leaves out embedded structs, as Go does, unless one of them is a
// pointer, which has to be tested for nil.
func (w *goWalk) follow(s *types.Struct, index []int) {
	var steps []model.Step
	pointers := false
	var f *types.Var
	container := deref(w.current)
	own := len(w.steps) == 0 || len(w.steps) == 1 && w.embedding != nil
	tag := ""
	for i, n := range index {
		f, tag = s.Field(n), s.Tag(n)
		steps = append(steps, model.Step{Field: f.Name(), Pointer: isPointer(f.Type()), Key: isKey(f)})
		if i < len(index)-1 {
			pointers = pointers || isPointer(f.Type())
			container = deref(f.Type())
			s, _ = container.Underlying().(*types.Struct)
		}
	}
	w.optional = w.optional || isPointer(f.Type()) || !own && omittable(tag)
	if !pointers {
		steps = steps[len(steps)-1:]
	}
	if w.promotes(f) {
		w.steps = w.steps[:len(w.steps)-1]
	}
	w.unset = own && isNamed(container, metaPackage, "TypeMeta")
	w.embedding = nil
	if f.Embedded() && !isPointer(f.Type()) && len(steps) == 1 {
		w.embedding = w.current
	}
	w.steps = append(w.steps, steps...)
	w.current = f.Type()
}

// omittable reports whether the JSON form leaves a field with the tag out when it is empty.
func omittable(tag string) bool {
	_, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}

// promotes reports whether the name of the embedded struct that was stepped into can be left out
// before the field.
func (w *goWalk) promotes(f *types.Var) bool {
	if w.embedding == nil {
		return false
	}
	obj, _, _ := types.LookupFieldOrMethod(deref(w.embedding), true, packageOf(w.embedding), f.Name())
	return obj == f
}

// jsonStep steps to the field with the JSON name. If there is none, it returns the names of the
// fields that there are.
func (w *goWalk) jsonStep(name string) ([]string, bool) {
	s, ok := deref(w.current).Underlying().(*types.Struct)
	if !ok {
		return nil, false
	}
	var names []string
	index := jsonIndex(s, name, &names, 0)
	if index == nil {
		return names, false
	}
	w.follow(s, index)
	return nil, true
}

// maxEmbedding bounds how deep structs are searched that embed each other by pointers.
const maxEmbedding = 8

// jsonIndex returns the index path of the field with the JSON name, also in embedded structs that
// are inlined, and collects the names of the other fields.
func jsonIndex(s *types.Struct, name string, names *[]string, depth int) []int {
	for i := range s.NumFields() {
		f := s.Field(i)
		tag, options, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("json"), ",")
		embedded, isStruct := deref(f.Type()).Underlying().(*types.Struct)
		switch {
		case tag == "-" || !f.Exported() && !isKey(f) && !(f.Embedded() && isStruct && !isPointer(f.Type())):
		case f.Embedded() && isStruct && (tag == "" || strings.Contains(options, "inline")):
			if depth < maxEmbedding {
				if index := jsonIndex(embedded, name, names, depth+1); index != nil {
					return append([]int{i}, index...)
				}
			}
		default:
			if tag == "" {
				tag = f.Name()
			}
			if tag == name {
				return []int{i}
			}
			*names = append(*names, tag)
		}
	}
	return nil
}

// text returns how the field at the end of the walk becomes text, or why it cannot.
func (w *goWalk) text() ([]model.Step, model.Text, string) {
	text, problem := textOf(w.current)
	return w.steps, text, problem
}

// textOf returns how a type becomes text. A pointer to text is text. If the type cannot be text,
// textOf returns what it is.
func textOf(t types.Type) (model.Text, string) {
	base := t
	if isPointer(t) {
		base = deref(t)
	}
	if isTime(base) || types.IsInterface(base) {
		return 0, describeType(base)
	}
	if basic, ok := base.Underlying().(*types.Basic); ok {
		switch info := basic.Info(); {
		case types.Identical(types.Unalias(base), types.Typ[types.String]):
			return model.TextString, ""
		case info&types.IsString != 0:
			return model.TextConvert, ""
		case info&types.IsBoolean != 0:
			return model.TextBool, ""
		case info&types.IsUnsigned != 0 && basic.Kind() != types.Uintptr:
			return model.TextUint, ""
		case info&types.IsInteger != 0:
			return model.TextInt, ""
		}
	}
	if isStringer(base) {
		return model.TextStringer, ""
	}
	return 0, describeType(base)
}

// isStringer reports whether values of the type, not only pointers to them, have String() string.
func isStringer(t types.Type) bool {
	sel := types.NewMethodSet(t).Lookup(nil, "String")
	if sel == nil {
		return false
	}
	sig, ok := sel.Type().(*types.Signature)
	return ok && sig.Params().Len() == 0 && sig.Results().Len() == 1 &&
		types.Identical(sig.Results().At(0).Type(), types.Typ[types.String])
}

// isTime reports whether a type is a point in time. Its String method returns a text that no object
// and no label has.
func isTime(t types.Type) bool {
	return isNamed(t, metaPackage, "Time") || isNamed(t, metaPackage, "MicroTime") || isNamed(t, "time", "Time")
}

func describeType(t types.Type) string {
	if isTime(t) {
		return "a time"
	}
	switch t.Underlying().(type) {
	case *types.Struct:
		return "the struct " + typeName(t)
	case *types.Slice, *types.Array:
		return "a list"
	case *types.Map:
		return "a map"
	case *types.Pointer:
		return "a pointer to a pointer"
	case *types.Interface:
		return "an interface"
	}
	return "of type " + typeName(t)
}

// typeName is the name of a type with the name of its package.
func typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return p.Name() })
}

func packageOf(t types.Type) *types.Package {
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Pkg()
	}
	return nil
}

// fieldNames returns the names of the exported fields, promoted ones included.
func fieldNames(s *types.Struct) []string {
	var names []string
	for f := range s.Fields() {
		if f.Exported() || isKey(f) {
			names = append(names, f.Name())
		}
		if inner, ok := deref(f.Type()).Underlying().(*types.Struct); ok && f.Embedded() && inner != s {
			for g := range inner.Fields() {
				if g.Exported() {
					names = append(names, g.Name())
				}
			}
		}
	}
	return names
}
