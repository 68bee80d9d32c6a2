// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"encoding/json"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Snapshot is an object as the API server had it.
type Snapshot struct {
	Absent      bool // there was none
	UID         types.UID
	Version     string
	Terminating bool
	Managers    []metav1.ManagedFieldsEntry

	source any            // what JSON is made of; it does not change any more
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

// snapshotOfAnswer returns the state that the API server has answered with. The step may change obj
// afterwards. It returns nil for an answer that names no version.
func snapshotOfAnswer(obj any) *Snapshot {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	s := &Snapshot{}
	if json.Unmarshal(data, &s.root) != nil {
		return nil
	}
	metadata, _ := s.root["metadata"].(map[string]any)
	s.Version, _ = metadata["resourceVersion"].(string)
	uid, _ := metadata["uid"].(string)
	s.UID = types.UID(uid)
	if s.Version == "" {
		return nil
	}
	return s
}

// Content returns the object as JSON has it.
func (s *Snapshot) Content() map[string]any {
	if s.root == nil && s.source != nil {
		if data, err := json.Marshal(s.source); err == nil {
			_ = json.Unmarshal(data, &s.root) //nolint:errcheck // it was made of an object
		}
	}
	return s.root
}

// Leaves returns the values that a write through a subresource can change, by their paths: those
// that are not maps, without what the API server keeps itself. A list is one value. Conditions are
// one value each, without the time of their last transition, which is another each time that a
// condition comes back.
func (s *Snapshot) Leaves(subresource string) map[string]any {
	all := make(map[string]any)
	for name, value := range s.Content() {
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
				out[i] = v[i]
			}
		}
		return out
	case nil:
		return nil
	default:
		if reflect.ValueOf(v).IsZero() {
			return nil
		}
		return v
	}
}
