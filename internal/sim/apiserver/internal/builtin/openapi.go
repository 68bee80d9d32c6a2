// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schemas are schemas in the form of OpenAPI v3, as JSON, by name.
type Schemas map[string]any

// SchemaPrefix is how a reference to one of [Schemas] begins.
const SchemaPrefix = "#/components/schemas/"

// AddKind adds the schema of a built-in kind, and of all types that it consists of. They are read off
// the Go types: the fields, their descriptions, and how strategic merge patches merge them. What
// Kubernetes notes only in comments of its source, such as limits of values, is missing.
func (s Schemas) AddKind(gvk schema.GroupVersionKind) {
	t := reflect.TypeOf(New(gvk)).Elem()
	s.of(t)
	definition, ok := s[schemaName(t)].(map[string]any)
	if !ok {
		return // the kind is written as a plain value
	}
	definition["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}}
}

// AddType adds the schema of the type of a value.
func (s Schemas) AddType(value any) { s.of(reflect.TypeOf(value)) }

// schemaName returns the name of the schema of a type: io.k8s.api.core.v1.Pod.
func schemaName(t reflect.Type) string {
	host, path, _ := strings.Cut(t.PkgPath(), "/")
	domain := strings.Split(host, ".")
	slices.Reverse(domain)
	return strings.Join(domain, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

// written is a type that says how its values are written: times, quantities, ...
type written interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// described is a type with descriptions of itself, under the empty name, and of its fields.
type described interface{ SwaggerDoc() map[string]string }

// of returns the schema of a type. That of a struct is a reference.
func (s Schemas) of(t reflect.Type) map[string]any {
	if w, ok := reflect.Zero(t).Interface().(written); ok && t.Kind() != reflect.Pointer {
		return writtenSchema(w)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int32, reflect.Uint32, reflect.Int16, reflect.Uint16, reflect.Int8:
		return map[string]any{"type": "integer", "format": "int32"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number", "format": "double"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "format": "byte"}
		}
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		name := schemaName(t)
		if _, known := s[name]; !known {
			definition := map[string]any{"type": "object"}
			s[name] = definition // before its fields, which may refer to it
			maps.Copy(definition, s.structure(t))
		}
		return map[string]any{"$ref": SchemaPrefix + name}
	}
	return map[string]any{} // anything
}

func writtenSchema(w written) map[string]any {
	types := w.OpenAPISchemaType()
	out := map[string]any{}
	if len(types) > 0 {
		out["type"] = types[0]
	}
	switch format := w.OpenAPISchemaFormat(); format {
	case "":
	case "int-or-string":
		return map[string]any{"x-kubernetes-int-or-string": true, "format": format, "oneOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}}
	default:
		out["format"] = format
	}
	return out
}

// structure returns the schema of a struct.
func (s Schemas) structure(t reflect.Type) map[string]any {
	out := map[string]any{"type": "object"}
	var docs map[string]string
	if d, ok := reflect.Zero(t).Interface().(described); ok {
		docs = d.SwaggerDoc()
	}
	if docs[""] != "" {
		out["description"] = docs[""]
	}
	properties, required := map[string]any{}, []any{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "" && f.Anonymous:
			inner := s.structure(f.Type)
			maps.Copy(properties, inner["properties"].(map[string]any))
			continue
		}
		if !strings.Contains(options, "omit") && f.Type.Kind() != reflect.Pointer {
			required = append(required, name)
		}
		properties[name] = s.property(f, docs[name])
	}
	out["properties"] = properties
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// property returns the schema of a field.
func (s Schemas) property(f reflect.StructField, description string) map[string]any {
	out := s.of(f.Type)
	if ref, ok := out["$ref"]; ok {
		out = map[string]any{"allOf": []any{map[string]any{"$ref": ref}}}
	}
	if description != "" {
		out["description"] = description
	}
	if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
		out["x-kubernetes-patch-strategy"] = strategy
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		out["x-kubernetes-patch-merge-key"] = key
	}
	return out
}
