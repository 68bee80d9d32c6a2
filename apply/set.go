// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"path"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Set is what should exist for one owner. The zero value is an empty set. It is built anew for
// each reconcile, and building it reads and writes nothing.
type Set struct {
	additions []addition
	left      []Ref
}

// An addition is one object that was added, with the options of its call.
type addition struct {
	object any
	policy policy
	caller uintptr
}

// Add adds objects, and the options of all objects of the call:
//
//	want.Add(deployment, service)
//	want.Add(migration, apply.Wave(-1), apply.Replace)
//
// An object is one of
//
//   - a typed object: fields with the tag omitempty or omitzero that have the zero value of their
//     type are left to others, also where JSON has them, such as "resources: {}";
//   - an apply configuration of client-go, and what else is a runtime.ApplyConfiguration;
//   - an *unstructured.Unstructured.
//
// An option is a [Policy], a [Wave], [ReadyWhen] or [RestartOn].
//
// An object without a namespace is in that of the owner. Its status is left to its controller. What
// is wrong with an object, such as a name that is missing or a second object of the same kind and
// name, is reported by the reconcile, with the line of this call.
func (s *Set) Add(items ...any) {
	var callers [1]uintptr
	runtime.Callers(2, callers[:])
	var p policy
	for _, item := range items {
		if option, ok := item.(Option); ok {
			option.apply(&p)
		}
	}
	for _, item := range items {
		if _, ok := item.(Option); !ok {
			s.additions = append(s.additions, addition{item, p, callers[0]})
		}
	}
}

// Leave names objects that are to stay as they are for now: they are neither written nor pruned, whether
// they exist or not. It is for what can't be added now, and has not left the set either, such as an
// object in a namespace that refuses it:
//
//	want.Leave(apply.Ref{Kind: "Secret", Namespace: "shop", Name: "db"})
//
// With the owner, they are deleted like all others.
func (s *Set) Leave(refs ...Ref) { s.left = append(s.left, refs...) }

// Len returns the number of objects that were added.
func (s *Set) Len() int { return len(s.additions) }

// place is where an object was added: "site/children.go:42".
func (a *addition) place() string {
	frame, _ := runtime.CallersFrames([]uintptr{a.caller}).Next()
	dir, file := path.Split(frame.File)
	return fmt.Sprintf("%s:%d", path.Join(path.Base(dir), file), frame.Line)
}

// text is what an object is called before its kind and name are known.
func (a *addition) text() string {
	if isNil(a.object) {
		return fmt.Sprintf("%T", a.object)
	}
	switch obj := a.object.(type) {
	case *unstructured.Unstructured:
		return strings.TrimSpace(obj.GetKind() + " " + obj.GetName())
	case client.Object:
		return strings.TrimSpace(fmt.Sprintf("%T %s", obj, obj.GetName()))
	case apiruntime.ApplyConfiguration:
		return fmt.Sprintf("%T", obj)
	}
	return fmt.Sprintf("%T", a.object)
}
