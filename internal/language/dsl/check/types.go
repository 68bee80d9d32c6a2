// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"go/types"
)

// metaPackage is where ObjectMeta is declared.
const metaPackage = "k8s.io/apimachinery/pkg/apis/meta/v1"

// objectProblem returns the reason why the type cannot be a kind, or "" if it can.
func objectProblem(obj *types.TypeName) string {
	named, ok := types.Unalias(obj.Type()).(*types.Named)
	if !ok {
		return "is not a struct"
	}
	s, ok := named.Underlying().(*types.Struct)
	if !ok {
		return "is not a struct"
	}
	if !embedsObjectMeta(s) {
		if way := wayToObjectMeta(s); way != "" {
			return "embeds metav1.ObjectMeta only by way of " + way + ", and a kind embeds it itself"
		}
		return "does not embed metav1.ObjectMeta"
	}
	methods := types.NewMethodSet(types.NewPointer(named))
	if methods.Lookup(obj.Pkg(), "DeepCopyObject") == nil {
		return "has no method DeepCopyObject"
	}
	if methods.Lookup(obj.Pkg(), "GetObjectKind") == nil {
		return "does not embed metav1.TypeMeta"
	}
	return ""
}

func embedsObjectMeta(s *types.Struct) bool {
	for f := range s.Fields() {
		if f.Embedded() && isNamed(f.Type(), metaPackage, "ObjectMeta") {
			return true
		}
	}
	return false
}

// wayToObjectMeta returns the embedded struct that embeds ObjectMeta, "" if there is none.
func wayToObjectMeta(s *types.Struct) string {
	for f := range s.Fields() {
		if inner, ok := deref(f.Type()).Underlying().(*types.Struct); ok && f.Embedded() && embedsObjectMeta(inner) {
			return f.Name()
		}
	}
	return ""
}

func isNamed(t types.Type, path, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path && named.Obj().Name() == name
}

// listType returns the name of the type for a list of the kind, or the empty string: a struct
// KINDList with a field Items that is a slice of the kind, and with the method DeepCopyObject.
func listType(kind *types.TypeName) string {
	name := kind.Name() + "List"
	if _, ok := kind.Pkg().Scope().Lookup(name).(*types.TypeName); !ok || listProblem(kind) != "" {
		return ""
	}
	return name
}

// listProblem returns what is wrong with the type KINDList, or "" if nothing is, or if there is no
// such type.
func listProblem(kind *types.TypeName) string {
	list, ok := kind.Pkg().Scope().Lookup(kind.Name() + "List").(*types.TypeName)
	if !ok {
		return ""
	}
	s, ok := list.Type().Underlying().(*types.Struct)
	if !ok {
		return "is not a struct but " + describeType(list.Type())
	}
	var items types.Type
	for f := range s.Fields() {
		if f.Name() == "Items" {
			items = f.Type()
		}
	}
	if items == nil {
		return "has no field Items"
	}
	slice, ok := items.Underlying().(*types.Slice)
	if !ok {
		return "has a field Items that is not a slice but " + describeType(items)
	}
	if !types.Identical(slice.Elem(), kind.Type()) {
		return fmt.Sprintf("has items of type %s, not %s", typeName(slice.Elem()), typeName(kind.Type()))
	}
	if types.NewMethodSet(types.NewPointer(list.Type())).Lookup(kind.Pkg(), "DeepCopyObject") == nil {
		return "has no method DeepCopyObject: run controller-gen object on the package"
	}
	return ""
}
