// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Snapshot is an object as the API server had it.
type Snapshot struct {
	Absent      bool // there was none
	UID         types.UID
	Version     string
	Terminating bool
	Managers    []metav1.ManagedFieldsEntry

	source any            // an object that does not change any more, or JSON
	root   map[string]any // made of source when it is needed
}

// SnapshotOf returns the state of an object that does not change any more: it belongs to a cache or
// was read for this.
func SnapshotOf(obj client.Object) *Snapshot {
	return &Snapshot{
		UID: obj.GetUID(), Version: obj.GetResourceVersion(), Terminating: !obj.GetDeletionTimestamp().IsZero(),
		Managers: obj.GetManagedFields(), source: obj,
	}
}

// snapshotOfAnswer returns the state that the API server has answered with, which is that of obj.
// It returns nil for an answer that names no version.
//
// Unless obj is kept as it is, the step may change it afterwards. Few writes are ever compared: so
// the object is copied, which costs a tenth of encoding it.
func snapshotOfAnswer(obj any, kept bool) *Snapshot {
	s := &Snapshot{}
	if o, ok := obj.(client.Object); ok {
		s.UID, s.Version = o.GetUID(), o.GetResourceVersion()
		switch {
		case s.Version == "":
		case kept:
			s.source = o
		default:
			s.source = withoutManagers(o)
		}
	} else if data, err := json.Marshal(obj); err == nil { // an applied configuration
		var head struct {
			Metadata struct {
				UID             types.UID
				ResourceVersion string
			}
		}
		if json.Unmarshal(data, &head) == nil {
			s.UID, s.Version, s.source = head.Metadata.UID, head.Metadata.ResourceVersion, data
		}
	}
	if s.Version == "" {
		return nil
	}
	return s
}

// withoutManagers returns a copy of an object without its managed fields, which are often most of
// it.
func withoutManagers(obj client.Object) client.Object {
	managers := obj.GetManagedFields()
	if _, ok := obj.(runtime.Unstructured); ok || managers == nil {
		return obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	}
	obj.SetManagedFields(nil)
	defer obj.SetManagedFields(managers)
	return obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
}

// Content returns the object as JSON has it.
func (s *Snapshot) Content() map[string]any {
	if s.root != nil || s.source == nil {
		return s.root
	}
	switch source := s.source.(type) {
	case []byte:
		_ = utiljson.Unmarshal(source, &s.root) //nolint:errcheck // it was unmarshaled before
	case *unstructured.Unstructured:
		s.root = source.Object
	default:
		if root, err := runtime.DefaultUnstructuredConverter.ToUnstructured(source); err == nil {
			s.root = root
		} else if data, err := json.Marshal(source); err == nil {
			_ = utiljson.Unmarshal(data, &s.root) //nolint:errcheck // it was made of an object
		}
	}
	return s.root
}

// Leaves returns the values that a write through a subresource can change, by their paths: those
// that are not maps, without what the API server keeps itself. A list is one value. Conditions are
// one value each, without the time of their last transition, which is another each time that a
// condition comes back.
func (s *Snapshot) Leaves(subresource string) map[string]any {
	return leavesOf(s.Content(), subresource)
}

// leavesOfPaths returns the leaves as [Snapshot.Leaves] does, at least those whose paths begin as
// one of the paths does: to encode a large object for the sake of its finalizers is not needed. All
// are returned for paths that are nil.
func (s *Snapshot) leavesOfPaths(paths []string, subresource string) map[string]any {
	if paths == nil || s.root != nil {
		return s.Leaves(subresource)
	}
	part := make(map[string]any)
	for _, path := range paths {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "."), ".")
		if _, done := part[name]; done {
			continue
		}
		field, ok := fieldOf(s.source, name)
		if !ok {
			return s.Leaves(subresource)
		}
		if meta, ok := field.(*metav1.ObjectMeta); ok {
			field = &writable{meta.Labels, meta.Annotations, meta.Finalizers, meta.OwnerReferences}
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(field)
		if err != nil {
			return s.Leaves(subresource)
		}
		part[name] = content
	}
	return leavesOf(part, subresource)
}

// writable are the fields of metadata that leaves have: to encode managed fields takes longer than
// the rest of most objects.
type writable struct {
	Labels          map[string]string       `json:"labels,omitempty"`
	Annotations     map[string]string       `json:"annotations,omitempty"`
	Finalizers      []string                `json:"finalizers,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
}

// fieldOf returns a pointer to the field of a typed object that JSON has under a name, if it is a
// struct.
func fieldOf(obj any, name string) (any, bool) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	v = v.Elem()
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag == name {
			return v.Field(i).Addr().Interface(), v.Field(i).Kind() == reflect.Struct
		}
	}
	return nil, false
}

func leavesOf(content map[string]any, subresource string) map[string]any {
	all := make(map[string]any)
	for name, value := range content {
		switch {
		case name == "apiVersion" || name == "kind":
		case name == "metadata":
			metadata, _ := value.(map[string]any)
			if subresource != "" {
				continue
			}
			for _, key := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
				collectLeaves(metadata[key], ".metadata."+key, all)
			}
		case (name == "status") == (subresource == "status"):
			collectLeaves(value, "."+name, all)
		}
	}
	return all
}

func collectLeaves(value any, path string, into map[string]any) {
	if conditions, ok := conditionsOf(path, value); ok {
		maps.Copy(into, conditions)
		return
	}
	if node, ok := value.(map[string]any); ok {
		for key, child := range node {
			collectLeaves(child, PathBelow(path, key), into)
		}
		return
	}
	if value = Trimmed(value); value != nil {
		into[path] = value
	}
}

// conditionsOf takes apart a list of conditions.
func conditionsOf(path string, value any) (map[string]any, bool) {
	items, ok := value.([]any)
	if !ok || path != ".status.conditions" {
		return nil, false
	}
	conditions := make(map[string]any)
	for _, item := range items {
		c, _ := item.(map[string]any)
		kind, ok := c["type"].(string)
		if !ok {
			return nil, false
		}
		c = maps.Clone(c)
		delete(c, "lastTransitionTime")
		conditions[path+"["+kind+"]"] = Trimmed(c)
	}
	return conditions, true
}

// Trimmed returns a value without the fields that one encoding of an object writes and another
// leaves out: those that are null, zero or empty. It returns nil if nothing is left.
func Trimmed(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if child = Trimmed(child); child != nil {
				out[key] = child
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i := range v {
			if out[i] = Trimmed(v[i]); out[i] == nil {
				out[i] = numbers(v[i])
			}
		}
		return out
	case nil:
		return nil
	case int64: // the same number, from another encoding
		return Trimmed(float64(v))
	default:
		if reflect.ValueOf(v).IsZero() {
			return nil
		}
		return v
	}
}

// numbers returns a value with its numbers as Trimmed has them.
func numbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = numbers(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = numbers(v[i])
		}
		return out
	case int64:
		return float64(v)
	}
	return value
}
