// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"strings"
)

// Key identifies the Go type of the kind, or the kind if it has none.
func (k Kind) Key() string {
	if k.Unstructured() {
		return k.APIVersion() + "/" + k.Kind
	}
	return k.Package + "." + k.Type
}

// Singles returns the kinds, by their [Kind.Key], of which the documents of the package read single
// objects only: see [State.Single]. Their rules can name these objects, and the cache needs no
// others.
//
// The kinds of targets are none of them, nor are those of which two objects are in one namespace: a
// cache watches one object of a namespace by its name, or all of them.
func (p *Package) Singles() map[string]bool {
	names := map[string]string{} // by kind and namespace
	singles := map[string]bool{}
	add := func(kind Kind, single bool) {
		known, seen := singles[kind.Key()]
		singles[kind.Key()] = single && (known || !seen)
	}
	for _, document := range p.Documents {
		for _, manager := range document.Managers {
			add(manager.Target, false)
			for _, st := range manager.States {
				namespace, name, ok := st.Single()
				place := st.Kind.Key() + " " + namespace
				add(st.Kind, ok && cmp.Or(names[place], name) == name)
				names[place] = name
			}
		}
	}
	return singles
}

// Single returns the object that a state names without references, and reports whether it does. The
// namespace is empty for a cluster-scoped kind.
func (s *State) Single() (namespace, name string, ok bool) {
	value := s.ObjectName
	for i := range s.Fields {
		if value == nil && s.Fields[i].Key == ".metadata.name" {
			value = &s.Fields[i].Value
		}
	}
	if value == nil {
		return "", "", false
	}
	if name, ok = value.literal(); !ok || s.Namespace.Mode == NoNamespace {
		return "", name, ok
	}
	if s.Namespace.Mode != NamedNamespace {
		return "", "", false
	}
	namespace, ok = s.Namespace.Value.literal()
	return namespace, name, ok
}

// literal returns the text of a value, and reports whether it has no references and is not empty.
func (v Value) literal() (string, bool) {
	var text strings.Builder
	for _, part := range v.Parts {
		if part.Ref != nil {
			return "", false
		}
		text.WriteString(part.Literal)
	}
	return text.String(), text.Len() > 0
}
