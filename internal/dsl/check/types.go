package check

import (
	"go/types"
)

// metaPackage is where ObjectMeta is declared.
const metaPackage = "k8s.io/apimachinery/pkg/apis/meta/v1"

// objectProblem says why the type cannot stand for a kind; it is empty for one that can.
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
		return "does not embed metav1.ObjectMeta"
	}
	if types.NewMethodSet(types.NewPointer(named)).Lookup(obj.Pkg(), "DeepCopyObject") == nil {
		return "has no method DeepCopyObject"
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

func isNamed(t types.Type, path, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path && named.Obj().Name() == name
}

// listType returns the name of the type for a list of the kind, or the empty string: a struct KINDList with a field
// Items that is a slice of the kind, and with the method DeepCopyObject.
func listType(kind *types.TypeName) string {
	name := kind.Name() + "List"
	list, ok := kind.Pkg().Scope().Lookup(name).(*types.TypeName)
	if !ok {
		return ""
	}
	s, ok := list.Type().Underlying().(*types.Struct)
	if !ok || types.NewMethodSet(types.NewPointer(list.Type())).Lookup(kind.Pkg(), "DeepCopyObject") == nil {
		return ""
	}
	for f := range s.Fields() {
		slice, ok := types.Unalias(f.Type()).(*types.Slice)
		if ok && f.Name() == "Items" && types.Identical(slice.Elem(), kind.Type()) {
			return name
		}
	}
	return ""
}
