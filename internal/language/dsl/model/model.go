// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package model is the meaning of a checked document. The checker makes it, and the generator
// writes Go from it.
//
// Every name in it has been resolved against the Go packages, so that the generator looks nothing
// up.
package model

import (
	"go/token"
	"slices"
	"strings"
)

// A Package is everything that one output package is generated from: all documents of one
// directory, merged.
type Package struct {
	// Name is the name of the Go package that the generated files belong to.
	Name string
	// Path is the import path of that package, empty when it is not known.
	Path string
	// Documents are the documents in the order of their file names.
	Documents []*Document
}

// A Document is one source file and the managers that it declares, in the order of declaration.
type Document struct {
	// File is the base name of the source, as it is named in the header of the generated file.
	File     string
	Managers []*Manager
}

// A Manager is a `decl NAME for KIND`.
type Manager struct {
	Name    string
	Doc     []string // comment lines above the declaration, without the slashes
	Target  Kind
	States  []*State
	Actions []*Action
	Pos     token.Position
}

// A Kind is a Kubernetes kind together with the Go type that stands for it.
type Kind struct {
	Group, Version, Kind string
	// Package is the import path of the Go package that holds Type and List, PackageName its name.
	// It is UnstructuredPackage for a kind without a Go type.
	Package, PackageName string
	Type, List           string // for example Job and JobList; List is empty when the package has none
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool
	// Resource is the name of the kind in paths and roles, such as jobs, if the package says it. If
	// it is empty, the name is the plural of the kind.
	Resource string
}

// UnstructuredPackage has the types for objects of kinds without Go types.
const UnstructuredPackage = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Unstructured reports whether the kind has no Go type.
func (k Kind) Unstructured() bool { return k.Package == UnstructuredPackage }

// APIVersion is the group and version as objects have them.
func (k Kind) APIVersion() string { return strings.TrimPrefix(k.Group+"/"+k.Version, "/") }

// A State is a declared view of the cluster.
type State struct {
	Name string // as written
	Doc  []string
	Kind Kind
	// List is true for a state declared as []Kind.
	List  bool
	Owned Ownership
	// Owner is the state whose object controls those of this one, nil if Owned is about the target.
	Owner *State
	// ObjectName is the value of the selector name, nil when there is none.
	ObjectName *Value
	// Namespace is where the objects are. For a cluster-scoped kind it is NoNamespace.
	Namespace Namespace
	// Conditions are the selectors kind and group: their values must be the kind, or the group, of the
	// state. Otherwise it selects nothing.
	Conditions []Selector
	Labels     []Selector // in the order of the document
	Fields     []Selector // in the order of the document; Key starts with a dot
	// FieldWhere is what is required of fields beside Fields.
	FieldWhere []FieldRequirement
	// Where and Annotations are what is required of labels beside Labels, and of annotations.
	Where, Annotations []Requirement
	Pos                token.Position
}

// A Requirement is a selector of a label or an annotation with an operator.
type Requirement struct {
	Key string
	// Operator is that of a label selector: in, notin, =, !=, exists, or ! for a key that must not be
	// there.
	Operator string
	Values   []Value
	Pos      token.Position
}

// A FieldRequirement is a selector of a field with an operator, which is one of those of a
// [Requirement]. The field has no value.
type FieldRequirement struct {
	Field    Selector
	Operator string
	Values   []Value
}

// Ownership is the owner reference to the target that the objects of a state must have.
type Ownership int

const (
	// OwnershipNone asks for no owner reference.
	OwnershipNone Ownership = iota
	// OwnershipController is the selector owned: the target is the controlling owner.
	OwnershipController
	// OwnershipAny is the selector owned=any: the target is one of the owners.
	OwnershipAny
)

// NamespaceMode is how the namespace of a state is determined.
type NamespaceMode int

const (
	// TargetNamespace is the namespace of the target. It is the default.
	TargetNamespace NamespaceMode = iota + 1
	// NamedNamespace is the namespace that Namespace.Value gives.
	NamedNamespace
	// AllNamespaces is for lists, and for single objects that are selected without a name.
	AllNamespaces
	// NoNamespace is for cluster-scoped kinds.
	NoNamespace
)

// A Namespace is the meaning of a namespace selector.
type Namespace struct {
	Mode  NamespaceMode
	Value *Value // for NamedNamespace
}

// Via returns the states that the selectors of the state refer to, in the order of the selectors:
// the owner first.
func (s *State) Via() []*State {
	var via []*State
	if s.Owner != nil {
		via = append(via, s.Owner)
	}
	for value := range s.values {
		for _, part := range value.Parts {
			if part.Ref != nil && part.Ref.State != nil && !slices.Contains(via, part.Ref.State) {
				via = append(via, part.Ref.State)
			}
		}
	}
	return via
}

// Optional reports whether a selector has an optional reference.
func (s *State) Optional() bool {
	for value := range s.values {
		if slices.ContainsFunc(value.Parts, func(p Part) bool { return p.Ref != nil && p.Ref.Optional }) {
			return true
		}
	}
	return false
}

// values yields the values of all selectors.
func (s *State) values(yield func(Value) bool) {
	var all []Value
	if s.ObjectName != nil {
		all = append(all, *s.ObjectName)
	}
	if s.Namespace.Value != nil {
		all = append(all, *s.Namespace.Value)
	}
	for _, selector := range slices.Concat(s.Conditions, s.Labels, s.Fields) {
		all = append(all, selector.Value)
	}
	for _, r := range slices.Concat(s.Where, s.Annotations) {
		all = append(all, r.Values...)
	}
	for _, r := range s.FieldWhere {
		all = append(all, r.Values...)
	}
	for _, value := range all {
		if !yield(value) {
			return
		}
	}
}

// A Selector is one labels/KEY=VALUE or fields/KEY=VALUE, or kind=VALUE or group=VALUE.
type Selector struct {
	Key   string
	Value Value
	// Path is the path of a field in the Go type of the state's kind. It is empty for labels and
	// for ControllerField.
	Path []Step
	// Text is how the value at the end of Path becomes text.
	Text Text
	// ControllerField is true for the field .metadata.controller: the name of the controlling owner
	// if that owner is of the target's kind.
	ControllerField bool
	Pos             token.Position
}

// A Value is text with references mixed in: `${target.Name}-meta` has two parts.
type Value struct {
	Parts []Part
}

// A Part is either a Literal or a reference to the target.
type Part struct {
	Literal string
	Ref     *Ref // nil for a literal
}

// A Ref is `${target.A.B}` or `${STATE.A.B}`.
type Ref struct {
	Source string // as written, for messages: target.Spec.Name
	// State is the state that is referred to, one object that is declared before. It is nil for the
	// target.
	State *State
	// Optional is true if an empty reference selects nothing, rather than being an error or a value.
	Optional bool
	// Default is what an empty reference stands for: a text, or a reference to the target. It is nil
	// if there is no default.
	Default *Value
	Path    []Step
	Text    Text
}

// A Step goes from a struct to one of its fields.
type Step struct {
	Field string // the Go name
	// Pointer is true when the field is a pointer that has to be tested for nil before it is
	// followed or read.
	Pointer bool
	// Each is true when the next step, or the text, is that of each element of the list Field. Pointer
	// is then true for a list of pointers.
	Each bool
	// Key is true when Field is a key in the content of an unstructured object. All steps of a path
	// are keys, or none.
	Key bool
	// MapKey is true when Field is a key of the map, of texts, that is the step before.
	MapKey bool
}

// Each splits a path after the last list whose elements it leads through. The first part is empty if
// there is none.
func Each(path []Step) (list, rest []Step) {
	for i := len(path); i > 0; i-- {
		if path[i-1].Each {
			return path[:i], path[i:]
		}
	}
	return nil, path
}

// Elements returns the path to the list whose elements a value refers to, nil if it refers to none.
func (v Value) Elements() []Step {
	for _, part := range v.Parts {
		if part.Ref != nil {
			if list, _ := Each(part.Ref.Path); list != nil {
				return list
			}
		}
	}
	return nil
}

// MayBeEmpty reports whether the text of a value can be empty. The name of the target is never empty,
// nor is a number, nor is an optional reference with which something is selected.
func (v Value) MayBeEmpty() bool {
	for _, part := range v.Parts {
		switch {
		case part.Ref == nil:
			if part.Literal != "" {
				return false
			}
		case part.Ref.Optional || !part.Ref.MayBeEmpty() || part.Ref.Default != nil && !part.Ref.Default.MayBeEmpty():
			return false
		}
	}
	return true
}

// MayBeEmpty reports whether the text of what is referred to can be empty.
func (r *Ref) MayBeEmpty() bool {
	switch r.Text {
	case TextString, TextConvert, TextStringer:
		return !IsMetadata(r.Path, "Name")
	}
	return false
}

// MayBeUnset reports whether a pointer on the way can be nil, or a key can be missing.
func (r *Ref) MayBeUnset() bool {
	if IsMetadata(r.Path, "Name") || IsMetadata(r.Path, "Namespace") {
		return false
	}
	return slices.ContainsFunc(r.Path, func(step Step) bool { return step.Pointer || step.Key || step.MapKey })
}

// IsMetadata reports whether a path is that of a field of the object's own metadata, which has this
// Go name.
func IsMetadata(path []Step, field string) bool {
	if len(path) == 2 && path[0].Key {
		return path[0].Field == "metadata" && path[1].Field == strings.ToLower(field)
	}
	return len(path) == 1 && path[0].Field == field
}

// Text is how a Go value becomes text.
type Text int

const (
	// TextString is the predeclared type string: use it as it is.
	TextString Text = iota + 1
	// TextConvert is a named string type: convert it with string(x).
	TextConvert
	// TextInt is any signed integer: strconv.FormatInt(int64(x), 10).
	TextInt
	// TextUint is any unsigned integer: strconv.FormatUint(uint64(x), 10).
	TextUint
	// TextBool is strconv.FormatBool(bool(x)).
	TextBool
	// TextStringer is a type with a method String() string in its value's method set.
	TextStringer
)

// An Action is a declared action with the states that it is given, in the order of its parameters.
type Action struct {
	Name   string
	Doc    []string
	States []*State
	Pos    token.Position
}
