// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// place is a field of a sample: present, or absent from an object that is present.
type place struct {
	path  []any // names of fields, and indexes of lists
	class string
	value any // nil if it is absent
}

// String returns the path as Kubernetes writes it: spec.containers[0].name.
func (p place) String() string { return pathString(p.path, false) }

// general returns the path for all elements of a list: spec.containers[].name.
func (p place) general() string { return pathString(p.path, true) }

func pathString(path []any, general bool) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			if general {
				b.WriteString("[]")
			} else {
				fmt.Fprintf(&b, "[%d]", step)
			}
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

var opaque = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity](): "quantity", reflect.TypeFor[intstr.IntOrString](): "intorstring",
	reflect.TypeFor[metav1.Time](): "time", reflect.TypeFor[metav1.MicroTime](): "time",
	reflect.TypeFor[runtime.RawExtension](): "raw", reflect.TypeFor[metav1.FieldsV1](): "raw", reflect.TypeFor[[]byte](): "bytes",
}

// places returns the fields of a value of a Go type.
func places(t reflect.Type, v any, path []any, out *[]place) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if class, ok := opaque[t]; ok {
		*out = append(*out, place{slices.Clone(path), class, v})
		return
	}
	switch t.Kind() {
	case reflect.String:
		*out = append(*out, place{slices.Clone(path), "string", v})
	case reflect.Bool:
		*out = append(*out, place{slices.Clone(path), "bool", v})
	case reflect.Int32, reflect.Int64, reflect.Int:
		*out = append(*out, place{slices.Clone(path), t.Kind().String(), v})
	case reflect.Slice:
		*out = append(*out, place{slices.Clone(path), "list", v})
		list, _ := v.([]any)
		for i, e := range list {
			places(t.Elem(), e, append(path, i), out)
		}
	case reflect.Map:
		*out = append(*out, place{slices.Clone(path), "map", v})
	case reflect.Struct:
		if len(path) > 0 {
			*out = append(*out, place{slices.Clone(path), "object", v})
		}
		if m, ok := v.(object); ok {
			fields(t, m, path, out)
		}
	}
}

func fields(t reflect.Type, m object, path []any, out *[]place) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for e := f.Type; ; e = e.Elem() {
				if e.Kind() != reflect.Pointer {
					fields(e, m, path, out)
					break
				}
			}
		case name == "" || name == "-" || skipped(t, name, path):
		default:
			places(f.Type, m[name], append(path, name), out)
		}
	}
}

// skipped reports whether a field is not probed: the metadata, which a package of its own validates,
// and the status.
func skipped(t reflect.Type, name string, path []any) bool {
	if len(path) == 0 && (name == "kind" || name == "apiVersion" || name == "metadata" || name == "status") {
		return true
	}
	return t == reflect.TypeFor[metav1.ObjectMeta]() && name != "labels" && name != "annotations"
}

// probe is a change of one field. A nil value removes it.
type probe struct {
	path  []any
	value any
}

// key describes the change.
func (p probe) key() string {
	if p.value == nil {
		return "-"
	}
	data, err := json.Marshal(p.value)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// texts are the probing values of strings. They differ in what the usual formats say about them.
var texts = []string{
	"", "Upper", "upper_case", "a.b", "a/b", "a/b/c", "-a", "a b", "1", "a", "/abs", "a:b", "../x", "é", "10.1.1.1", "10.0.0.0/8", "A_B", "a.b/C", "*.a.b",
	strings.Repeat("a", 16), strings.Repeat("a", 64), strings.Repeat("a", 254), "https://x/y", "%", "http",
}

// changes returns the probes of a field.
func changes(p place) []probe {
	values := map[string][]any{
		"int32":       {-1, 0, 1, 2, 50, 100, 101, 600, 65535, 65536, 70000, 1<<31 - 1},
		"int64":       {-1, 0, 1, 2, 50, 100, 101, 600, 65535, 65536, 70000, 1<<31 - 1, 1 << 31},
		"int":         {-1, 0, 1},
		"bool":        {true, false},
		"quantity":    {"-1", "0", "1", "2", "3500m"},
		"intorstring": {-1, 0, 1, 2, 101, 70000, "", "50%", "0%", "150%", "-5%", "abc", "a b", "Upper", "a-very-long-name-of-port", "1"},
	}[p.class]
	if p.class == "string" {
		for _, t := range texts {
			values = append(values, t)
		}
	}
	if p.value != nil {
		values = append(values, nil)
	}
	switch v := p.value.(type) {
	case []any:
		values = append(values, []any{})
		if len(v) > 0 {
			values = append(values, append(slices.Clone(v), v[0]), v[1:])
		}
	case object:
		values = append(values, object{})
		if p.class == "map" {
			values = append(values, ofMap(v)...)
		}
	}
	var out []probe
	for _, value := range values {
		out = append(out, probe{p.path, value})
	}
	return out
}

// ofMap returns maps with one more key, and with one other value.
func ofMap(m object) []any {
	var out []any
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, extra := range texts {
		with := clone(m).(object)
		if len(keys) > 0 {
			with[extra] = m[keys[0]]
		} else {
			with[extra] = "1"
		}
		out = append(out, with)
		if len(keys) == 0 {
			continue
		}
		if _, ok := m[keys[0]].(string); ok {
			other := clone(m).(object)
			other[keys[0]] = extra
			out = append(out, other)
		}
	}
	return out
}

func clone(v any) any {
	switch v := v.(type) {
	case object:
		return runtime.DeepCopyJSON(v)
	case []any:
		return runtime.DeepCopyJSONValue(v)
	}
	return v
}

// apply returns an object with the change.
func (p probe) apply(content object) object {
	out := clone(content).(object)
	var at any = out
	for i, step := range p.path {
		last := i == len(p.path)-1
		switch step := step.(type) {
		case string:
			m := at.(object)
			if last && p.value == nil {
				delete(m, step)
			} else if last {
				m[step] = clone(p.value)
			}
			at = m[step]
		case int:
			list := at.([]any)
			if last {
				if p.value == nil {
					list[step] = object{}
				} else {
					list[step] = clone(p.value)
				}
			}
			at = list[step]
		}
	}
	return out
}

// in returns the value of the probe's field in an object, or nil.
func (p probe) in(content object) any {
	var at any = content
	for _, step := range p.path {
		switch step := step.(type) {
		case string:
			m, _ := at.(object)
			at = m[step]
		case int:
			list, _ := at.([]any)
			if step >= len(list) {
				return nil
			}
			at = list[step]
		}
	}
	return at
}
