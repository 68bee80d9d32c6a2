// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type props = apiextensionsv1.JSONSchemaProps

// schemaOf returns the structural schema of a struct, by its json tags:
//
//   - A field is required if its tag has neither omitempty nor omitzero. A pointer, map or slice
//     that is required may be null, because Go writes it so.
//   - A type without a schema, such as an interface, a json.RawMessage, a runtime.RawExtension, or
//     a type with a MarshalJSON of its own, keeps all fields.
//   - A type that contains itself keeps all fields below its second occurrence: schemas have no
//     references.
//
// The error names the field whose type JSON can't have, such as a channel, or a map whose keys are
// structs.
func schemaOf(t reflect.Type) (*apiextensionsv1.JSONSchemaProps, error) {
	s := &schemer{}
	p, err := s.of(t)
	if err != nil {
		return nil, err
	}
	if _, has := p.Properties["metadata"]; has && p.Properties["kind"].Type != "" {
		p.Properties["metadata"] = props{Type: "object"} // that of an object is the API server's
		p.Required = slices.DeleteFunc(p.Required, func(name string) bool {
			return slices.Contains([]string{"metadata", "status", "apiVersion", "kind"}, name)
		})
	}
	return p, nil
}

// A schemer makes the schema of a type.
type schemer struct {
	above []reflect.Type // the structs around the one that is being made
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	quantity      = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
)

// known are types whose JSON does not follow from their fields.
var known = map[reflect.Type]props{
	reflect.TypeFor[intstr.IntOrString]():        {XIntOrString: true},
	reflect.TypeFor[resource.Quantity]():         {XIntOrString: true, Pattern: quantity},
	reflect.TypeFor[runtime.RawExtension]():      {Type: "object", XPreserveUnknownFields: new(true)},
	reflect.TypeFor[unstructured.Unstructured](): {Type: "object", XPreserveUnknownFields: new(true), XEmbeddedResource: true},
	reflect.TypeFor[json.RawMessage]():           {XPreserveUnknownFields: new(true)},
	reflect.TypeFor[apiextensionsv1.JSON]():      {XPreserveUnknownFields: new(true)},
	reflect.TypeFor[metav1.FieldsV1]():           {Type: "object", XPreserveUnknownFields: new(true)},
}

// described is what types of Kubernetes say of their JSON.
type described interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

func (s *schemer) of(t reflect.Type) (*props, error) {
	if p, ok := known[t]; ok {
		return p.DeepCopy(), nil
	}
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem())
	}
	if d, ok := reflect.New(t).Interface().(described); ok && len(d.OpenAPISchemaType()) == 1 {
		p := &props{Type: d.OpenAPISchemaType()[0], Format: d.OpenAPISchemaFormat()}
		if t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.MicroTime]() {
			p.Nullable = true // the zero time is null
		}
		return p, nil
	}
	switch pointer := reflect.PointerTo(t); {
	case t.PkgPath() == "time" && t.Name() == "Time":
		return &props{Type: "string", Format: "date-time"}, nil
	case pointer.Implements(jsonMarshaler):
		return &props{XPreserveUnknownFields: new(true)}, nil
	case pointer.Implements(textMarshaler):
		return &props{Type: "string"}, nil
	}
	return s.ofKind(t)
}

func (s *schemer) ofKind(t reflect.Type) (*props, error) {
	switch t.Kind() {
	case reflect.Bool:
		return &props{Type: "boolean"}, nil
	case reflect.String:
		return &props{Type: "string"}, nil
	case reflect.Int32:
		return &props{Type: "integer", Format: "int32"}, nil
	case reflect.Int, reflect.Int64, reflect.Int16, reflect.Int8:
		return &props{Type: "integer", Format: "int64"}, nil
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		return &props{Type: "integer", Format: "int64", Minimum: new(float64)}, nil
	case reflect.Float32, reflect.Float64:
		return &props{Type: "number"}, nil
	case reflect.Interface:
		return &props{XPreserveUnknownFields: new(true)}, nil
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return &props{Type: "string", Format: "byte"}, nil
		}
		items, err := s.of(t.Elem())
		if err != nil {
			return nil, fmt.Errorf("[]: %w", err)
		}
		return &props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}}, nil
	case reflect.Map:
		return s.ofMap(t)
	case reflect.Struct:
		return s.ofStruct(t)
	}
	return nil, fmt.Errorf("JSON has no %s", t)
}

func (s *schemer) ofMap(t reflect.Type) (*props, error) {
	if k := t.Key(); k.Kind() != reflect.String && !k.Implements(textMarshaler) && !(k.Kind() >= reflect.Int && k.Kind() <= reflect.Uint64) {
		return nil, fmt.Errorf("JSON has no map whose keys are %s", k)
	}
	values, err := s.of(t.Elem())
	if err != nil {
		return nil, fmt.Errorf("{}: %w", err)
	}
	return &props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: values}}, nil
}

func (s *schemer) ofStruct(t reflect.Type) (*props, error) {
	if slices.Contains(s.above, t) {
		return &props{Type: "object", XPreserveUnknownFields: new(true)}, nil
	}
	s.above = append(s.above, t)
	defer func() { s.above = s.above[:len(s.above)-1] }()
	p := &props{Type: "object", Properties: map[string]props{}}
	if err := s.addFields(p, t); err != nil {
		return nil, err
	}
	slices.Sort(p.Required)
	p.Required = slices.Compact(p.Required)
	return p, nil
}

// addFields adds the fields of a struct. Those of the outer struct hide those of embedded ones, as
// they do in Go.
func (s *schemer) addFields(p *props, t reflect.Type) error {
	var inline []reflect.Type
	for n := range t.NumField() {
		f := t.Field(n)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		options := strings.Split(rest, ",")
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case name == "-" && rest == "" || !f.IsExported() && !f.Anonymous:
			continue
		case of.Kind() == reflect.Struct && (slices.Contains(options, "inline") || f.Anonymous && name == ""):
			inline = append(inline, of)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		field, err := s.of(f.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if slices.Contains(options, "string") {
			field = &props{Type: "string"}
		}
		if !slices.Contains(options, "omitempty") && !slices.Contains(options, "omitzero") {
			p.Required = append(p.Required, name)
			if kind := f.Type.Kind(); kind == reflect.Pointer || kind == reflect.Map || kind == reflect.Slice {
				field.Nullable = true
			}
		}
		p.Properties[name] = *field
	}
	for _, of := range inline {
		if slices.Contains(s.above, of) {
			continue // Go ignores it, too
		}
		s.above = append(s.above, of)
		inner := &props{Properties: map[string]props{}}
		err := s.addFields(inner, of)
		s.above = s.above[:len(s.above)-1]
		if err != nil {
			return err
		}
		for name, field := range inner.Properties {
			if _, hidden := p.Properties[name]; hidden {
				continue
			}
			p.Properties[name] = field
			if slices.Contains(inner.Required, name) {
				p.Required = append(p.Required, name)
			}
		}
	}
	return nil
}
