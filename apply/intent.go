// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contentOf returns what the author of an object has meant: its JSON without what Go encodes
// although it was not set, and without what only servers set. The object stays as it is.
func contentOf(object any) (map[string]any, error) {
	if isNil(object) {
		return nil, fmt.Errorf("it is a nil %T", object)
	}
	var content map[string]any
	switch obj := object.(type) {
	case *unstructured.Unstructured:
		copied, err := copyOf(obj.Object)
		if err != nil {
			return nil, err
		}
		content = copied
	case client.Object:
		encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("encoding it: %w", err)
		}
		dropUnset(reflect.ValueOf(obj), encoded)
		dropUnsetStatus(reflect.ValueOf(obj), encoded)
		content = encoded
	case runtime.ApplyConfiguration:
		data, err := json.Marshal(obj)
		if err != nil {
			return nil, fmt.Errorf("encoding it: %w", err)
		}
		if err := utiljson.Unmarshal(data, &content); err != nil {
			return nil, fmt.Errorf("encoding it: %w", err)
		}
	default:
		return nil, errors.New("it is no object: add a client.Object, an apply configuration, or an option of package apply")
	}
	dropNull(content)
	if status, ok := content["status"].(map[string]any); ok && len(status) > 0 {
		return nil, errors.New("it has a status, which belongs to its controller: leave it empty")
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		if metadata["generateName"] != nil && metadata["name"] == nil {
			return nil, errors.New("it has a generateName, which would be another name each time: give it a name")
		}
		for _, field := range setByServers {
			delete(metadata, field)
		}
	}
	return content, nil
}

func isNil(object any) bool {
	v := reflect.ValueOf(object)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// copyOf copies what JSON has. Numbers and lists of other Go types than those of a decoder, such as
// int and []string, become these.
func copyOf(value map[string]any) (map[string]any, error) {
	if isDecoded(value) {
		return runtime.DeepCopyJSON(value), nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	return content, nil
}

// isDecoded reports whether a value has only types that a decoder of Kubernetes gives.
func isDecoded(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if !isDecoded(field) {
				return false
			}
		}
	case []any:
		for _, item := range value {
			if !isDecoded(item) {
				return false
			}
		}
	case nil, string, bool, int64, float64:
	default:
		return false
	}
	return true
}

// dropUnsetStatus removes a status that was not set, also if its fields have no omitempty.
func dropUnsetStatus(v reflect.Value, content map[string]any) {
	if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
		return
	}
	if status := v.FieldByName("Status"); status.IsValid() && status.IsZero() {
		delete(content, "status")
	}
}

// setByServers are fields of the metadata that an object has which was read from a cluster.
var setByServers = []string{
	"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generateName",
}

// unfold replaces what a Secret is only written with by what it is read with.
func unfold(secret map[string]any) {
	plain, ok := secret["stringData"].(map[string]any)
	if !ok {
		return
	}
	data, ok := secret["data"].(map[string]any)
	if !ok {
		data = make(map[string]any, len(plain))
		secret["data"] = data
	}
	for key, value := range plain {
		text, _ := value.(string)
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(secret, "stringData")
}

// dropNull removes what is null: to apply it would set it.
func dropNull(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field == nil {
				delete(value, key)
				continue
			}
			dropNull(field)
		}
	case []any:
		for _, item := range value {
			dropNull(item)
		}
	}
}

// dropUnset removes from content, which v was encoded to, the fields that the tags of its Go type
// let its author leave out, and that have the zero value: structs that JSON has all the same.
func dropUnset(v reflect.Value, content any) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		if fields, ok := content.(map[string]any); ok {
			dropUnsetFields(v, fields)
		}
	case reflect.Map:
		fields, ok := content.(map[string]any)
		if !ok || !mayHaveStructs(v.Type().Elem()) {
			return
		}
		for entries := v.MapRange(); entries.Next(); {
			dropUnset(entries.Value(), fields[fmt.Sprint(entries.Key())])
		}
	case reflect.Slice, reflect.Array:
		items, ok := content.([]any)
		if !ok || !mayHaveStructs(v.Type().Elem()) {
			return
		}
		for i := range min(v.Len(), len(items)) {
			dropUnset(v.Index(i), items[i])
		}
	}
}

func dropUnsetFields(v reflect.Value, content map[string]any) {
	for _, field := range fieldsOf(v.Type()) {
		value := v.Field(field.index)
		if field.inline {
			dropUnset(value, content)
			continue
		}
		encoded, ok := content[field.name]
		if !ok {
			continue
		}
		if field.optional && value.IsZero() {
			delete(content, field.name)
			continue
		}
		dropUnset(value, encoded)
		if below, is := encoded.(map[string]any); is && len(below) == 0 && field.optional && value.Kind() == reflect.Struct {
			delete(content, field.name)
		}
	}
}

// A field is one of a struct whose value has, or may have, something to drop.
type field struct {
	index    int
	name     string
	inline   bool
	optional bool
}

var knownFields sync.Map // of reflect.Type to []field

func fieldsOf(t reflect.Type) []field {
	if known, ok := knownFields.Load(t); ok {
		return known.([]field) //nolint:errcheck // put there below
	}
	var fields []field
	if !reflect.PointerTo(t).Implements(marshaler) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			options := strings.Split(rest, ",")
			if name == "-" || !f.IsExported() && !f.Anonymous || !mayHaveStructs(f.Type) {
				continue
			}
			fields = append(fields, field{
				index: i, name: name, inline: f.Anonymous && name == "" || slices.Contains(options, "inline"),
				optional: slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero"),
			})
			if name == "" {
				fields[len(fields)-1].name = f.Name
			}
		}
	}
	known, _ := knownFields.LoadOrStore(t, fields)
	return known.([]field) //nolint:errcheck // put there here
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// mayHaveStructs reports whether values of a type may have structs in them.
func mayHaveStructs(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Interface
}
