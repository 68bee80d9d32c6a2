// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package transition derives from the schema of a custom resource, and from an object that works,
// what users may change of the object: rightly, to the bounds of what the schema allows, and by
// mistake.
//
//	for _, t := range transition.Of(schema, sample) {
//		changed := t.Of(sample) // "spec.replicas: minimum, 0"
//	}
//
// It only generates: whether the API server accepts a changed object, and what an operator does with
// it, is for others to see.
package transition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Kind is a way in which a property changes.
type Kind string

// The kinds, in the order in which they are worth trying.
const (
	Changed Kind = "changed" // to another value that is as good as the first
	Wrong   Kind = "wrong"   // to a value that the schema allows and that makes no sense
	Minimum Kind = "minimum" // to the smallest value that the schema allows
	Removed Kind = "removed"
	Added   Kind = "added" // a property that the object does not have
	Empty   Kind = "empty"
	Maximum Kind = "maximum" // to the largest value that the schema allows
)

var order = []Kind{Changed, Wrong, Minimum, Removed, Added, Empty, Maximum}

// A Transition is a change of one property.
type Transition struct {
	Path  []string // of properties and, for items of lists, their numbers
	Kind  Kind
	Value any    // that the property gets; nothing if it is removed
	Why   string // what is wrong with the value, if Kind is Wrong: "no such image"
}

// String describes the transition in a line, which differs from that of all others of the object.
func (t Transition) String() string {
	text := strings.Join(t.Path, ".") + ": " + string(t.Kind)
	if t.Kind != Removed {
		data, err := json.Marshal(t.Value)
		if err != nil {
			panic(err) // values are JSON
		}
		text += ", " + string(data)
	}
	if t.Why != "" {
		text += " (" + t.Why + ")"
	}
	return text
}

// Of returns a copy of an object with the change. The object must be the one for which the
// transition was generated, or have the same form.
func (t Transition) Of(object map[string]any) map[string]any {
	changed := runtime.DeepCopyJSON(object)
	out, _ := t.set(changed, t.Path).(map[string]any)
	return out
}

// set returns a value with the change at a path.
func (t Transition) set(value any, path []string) any {
	if len(path) == 0 {
		return runtime.DeepCopyJSONValue(t.Value)
	}
	if value == nil {
		value = map[string]any{} // a sample without a spec
	}
	switch v := value.(type) {
	case map[string]any:
		if len(path) == 1 && t.Kind == Removed {
			delete(v, path[0])
			return v
		}
		v[path[0]] = t.set(v[path[0]], path[1:])
	case []any:
		if i := slices.Index(numbers, path[0]); i >= 0 && i < len(v) {
			v[i] = t.set(v[i], path[1:])
		}
	}
	return value
}

// numbers are the items of lists that change: what is true of the first is true of others.
var numbers = []string{"0"}

// Of returns the transitions of the spec of an object with a schema. The order is the one in which
// they are worth trying: first those of each kind that are the first of their property. It is the
// same each time.
func Of(schema *structuralschema.Structural, object map[string]any) []Transition {
	g := &generator{known: map[string]bool{}}
	for _, name := range sortedNames(schema.Properties) {
		if name == "apiVersion" || name == "kind" || name == "metadata" || name == "status" {
			continue
		}
		child := schema.Properties[name]
		if value, ok := object[name]; ok {
			g.inside([]string{name}, &child, value)
		} else {
			g.inside([]string{name}, &child, map[string]any{})
		}
	}
	slices.SortStableFunc(g.list, func(a, b Transition) int {
		return rank(a) - rank(b)
	})
	return g.list
}

// rank is smaller for what is worth trying earlier: what is deep in an object is often passed on to
// another one as it is.
func rank(t Transition) int { return slices.Index(order, t.Kind) + 2*max(0, len(t.Path)-2) }

type generator struct {
	list  []Transition
	known map[string]bool
}

func (g *generator) add(path []string, kind Kind, value any, why string) {
	t := Transition{Path: slices.Clone(path), Kind: kind, Value: value, Why: why}
	key := strings.Join(path, ".") + "=" + fmt.Sprintf("%#v", value)
	if kind == Removed {
		key += " removed"
	}
	if !g.known[key] {
		g.known[key] = true
		g.list = append(g.list, t)
	}
}

// inside generates the transitions of what is in a value that the object has.
func (g *generator) inside(path []string, s *structuralschema.Structural, value any) {
	switch v := value.(type) {
	case map[string]any:
		g.properties(path, s, v)
		if values := s.AdditionalProperties; values != nil && values.Structural != nil {
			for _, name := range sortedNames(v) {
				g.property(append(path, name), values.Structural, v[name], true)
			}
		}
	case []any:
		if s.Items != nil && len(v) > 0 {
			g.property(append(path, "0"), s.Items, v[0], false)
			g.keep(append(path, "0"), s.XListMapKeys)
		}
	}
}

// keep drops the transitions that remove what identifies an item, which a list can't do without.
func (g *generator) keep(item, keys []string) {
	g.list = slices.DeleteFunc(g.list, func(t Transition) bool {
		last := len(t.Path) - 1
		return t.Kind == Removed && last == len(item) && slices.Equal(t.Path[:last], item) && slices.Contains(keys, t.Path[last])
	})
}

func (g *generator) properties(path []string, s *structuralschema.Structural, value map[string]any) {
	for _, name := range sortedNames(s.Properties) {
		child := s.Properties[name]
		has, ok := value[name]
		if ok {
			g.property(append(path, name), &child, has, true)
			continue
		}
		for _, v := range valuesOf(name, &child, nil) {
			kind := v.kind
			if kind == Changed || kind == Minimum {
				kind = Added
			}
			if kind == Added || kind == Wrong {
				g.add(append(path, name), kind, v.value, v.why)
			}
		}
	}
}

// property generates the transitions of a value that the object has, and of what is in it.
func (g *generator) property(path []string, s *structuralschema.Structural, value any, removable bool) {
	name := path[len(path)-1]
	for _, v := range valuesOf(name, s, value) {
		if equal(v.value, value) {
			continue
		}
		g.add(path, v.kind, v.value, v.why)
	}
	if removable {
		g.add(path, Removed, nil, "")
	}
	g.inside(path, s, value)
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// SchemaOf returns the structural schema of a version of a definition. It is an error if there is
// none.
func SchemaOf(definition *apiextensionsv1.CustomResourceDefinition, version string) (*structuralschema.Structural, error) {
	for _, v := range definition.Spec.Versions {
		if v.Name != version || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		props := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
			return nil, fmt.Errorf("converting the schema of %s: %w", definition.Name, err)
		}
		s, err := structuralschema.NewStructural(props)
		if err != nil {
			return nil, fmt.Errorf("reading the schema of %s: %w", definition.Name, err)
		}
		return s, nil
	}
	return nil, fmt.Errorf("the definition %s has no schema for version %s", definition.Name, version)
}
