// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"go/types"
	"regexp"
	"strings"
)

// The packages whose types and functions the analyzers know.
const (
	rootPath         = "github.com/ctrlkit/ctrlkit"
	applyPath        = rootPath + "/apply"
	conditionPath    = rootPath + "/condition"
	externalPath     = rootPath + "/external"
	handlersPath     = rootPath + "/handlers"
	referencePath    = rootPath + "/reference"
	statePath        = rootPath + "/state"
	stepPath         = rootPath + "/step"
	runtimePath      = "sigs.k8s.io/controller-runtime"
	builderPath      = runtimePath + "/pkg/builder"
	cachePath        = runtimePath + "/pkg/cache"
	clientPath       = runtimePath + "/pkg/client"
	clusterPath      = runtimePath + "/pkg/cluster"
	controllerPath   = runtimePath + "/pkg/controller"
	utilPath         = runtimePath + "/pkg/controller/controllerutil"
	eventPath        = runtimePath + "/pkg/event"
	managerPath      = runtimePath + "/pkg/manager"
	predicatePath    = runtimePath + "/pkg/predicate"
	resultPath       = runtimePath + "/pkg/reconcile"
	sourcePath       = runtimePath + "/pkg/source"
	metaPath         = "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiMetaPath      = "k8s.io/apimachinery/pkg/api/meta"
	unstructuredPath = metaPath + "/unstructured"
)

// ours reports whether a package belongs to this module's library.
func ours(path string) bool {
	return path == rootPath || (strings.HasPrefix(path, rootPath+"/") && !strings.HasPrefix(path, rootPath+"/examples/"))
}

// named returns the named type that t is, or that it points to; nil if there is none.
func named(t types.Type) *types.Named {
	if t == nil {
		return nil
	}
	t = types.Unalias(t)
	if pointer, ok := t.(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	n, _ := t.(*types.Named)
	return n
}

// isNamed reports whether t is the named type, also one of its instances.
func isNamed(t types.Type, path, name string) bool {
	if t == nil {
		return false
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && isObject(n.Obj(), path, name)
}

// refersTo reports whether t is the named type or a pointer to it.
func refersTo(t types.Type, path, name string) bool {
	n := named(t)
	return n != nil && isObject(n.Obj(), path, name)
}

// isObject reports whether an object is the one that a package declares with a name.
func isObject(o types.Object, path, name string) bool { return pathOf(o) == path && o.Name() == name }

// pathOf returns the path of the package of an object, empty if it has none.
func pathOf(o types.Object) string {
	if f, ok := o.(*types.Func); o == nil || (ok && f == nil) || o.Pkg() == nil {
		return ""
	}
	return o.Pkg().Path()
}

func isContext(t types.Type) bool { return isNamed(t, "context", "Context") }

func isResult(t types.Type) bool { return isNamed(t, resultPath, "Result") }

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

func isTime(t types.Type) bool {
	return refersTo(t, "time", "Time") || refersTo(t, metaPath, "Time") || refersTo(t, metaPath, "MicroTime")
}

// returnsOutcome reports whether a function returns what Reconcile does.
func returnsOutcome(s *types.Signature) bool {
	return s != nil && s.Results().Len() == 2 && isResult(s.Results().At(0).Type()) && isError(s.Results().At(1).Type())
}

// resultsOf returns the types of the results of a call.
func resultsOf(t types.Type) []types.Type {
	tuple, ok := t.(*types.Tuple)
	if !ok {
		return []types.Type{t}
	}
	results := make([]types.Type, tuple.Len())
	for i := range results {
		results[i] = tuple.At(i).Type()
	}
	return results
}

// isRequest reports whether t is a pointer to a step.Request, and returns the type of its object.
func isRequest(t types.Type) (object types.Type, ok bool) {
	n := named(t)
	if n == nil || !isObject(n.Obj(), stepPath, "Request") || n.TypeArgs().Len() != 1 {
		return nil, false
	}
	return n.TypeArgs().At(0), true
}

// A kind is a Go type of Kubernetes objects.
type kind struct{ name *types.TypeName }

// version is the last element of the path of a package that holds one version of an API.
var version = regexp.MustCompile(`/v\d+((alpha|beta)\d+)?$`)

// key identifies a kind in all versions of its API.
func (k kind) key() string {
	return version.ReplaceAllString(k.name.Pkg().Path(), "") + "." + k.name.Name()
}

// String returns the name of the kind with its package, as it would be written in Go.
func (k kind) String() string { return qualifier(k.name.Pkg()) + "." + k.name.Name() }

// qualifier returns what a package is usually imported as: "corev1" for "k8s.io/api/core/v1".
func qualifier(pkg *types.Package) string {
	parts := strings.Split(pkg.Path(), "/")
	last := parts[len(parts)-1]
	if len(parts) < 2 || !version.MatchString("/"+last) || parts[len(parts)-2] == "api" {
		return pkg.Name()
	}
	return parts[len(parts)-2] + last
}

// kindOf returns the kind of an object, or of the items of a list. It is false for a type that can
// hold objects of any kind.
func kindOf(t types.Type) (kind, bool) {
	n := named(t)
	if n == nil || n.Obj().Pkg() == nil || n.TypeArgs().Len() > 0 || !hasMethod(n, "DeepCopyObject") {
		return kind{}, false
	}
	structure, ok := n.Underlying().(*types.Struct)
	if path := n.Obj().Pkg().Path(); !ok || path == metaPath || path == unstructuredPath {
		return kind{}, false
	}
	if hasMethod(n, "GetResourceVersion") && hasMethod(n, "GetNamespace") {
		return kind{n.Obj()}, true
	}
	for field := range structure.Fields() {
		if items, ok := field.Type().Underlying().(*types.Slice); ok && field.Name() == "Items" {
			return kindOf(items.Elem())
		}
	}
	return kind{}, false
}

func hasMethod(n *types.Named, name string) bool {
	return types.NewMethodSet(types.NewPointer(n)).Lookup(n.Obj().Pkg(), name) != nil
}

// isClient reports whether t is an interface that reads and writes objects, such as client.Client.
func isClient(t types.Type) bool {
	if t == nil || !types.IsInterface(t) {
		return false
	}
	methods := types.NewMethodSet(t)
	for _, name := range []string{"Get", "List", "Create", "Status"} {
		if m := methods.Lookup(nil, name); m == nil || m.Obj().Pkg() == nil || m.Obj().Pkg().Path() != clientPath {
			return false
		}
	}
	return true
}
