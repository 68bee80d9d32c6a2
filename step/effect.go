// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A write is a request that the API server has accepted.
type write struct {
	verb, subresource string
	object            journal.Object
	fields            []string // the paths that were sent, as far as they are known
	owner             string   // the field owner that they were sent with
	// noOp says that the object is as it was: an answer with a resource version that was known
	// before, a dry run, or the deletion of an object that is being deleted.
	noOp bool

	// What the write did, for the detection of hot loops. Before is nil if it is not known; then
	// after is nil, too, unless the answer was an object. Both are nil for subresources that are no
	// part of the object.
	before, after *snapshot
	verified      bool         // before was read from the API server
	cached        reflect.Type // of the object, if that is cached
}

// A snapshot is an object as the API server had it.
type snapshot struct {
	absent      bool // there was none
	uid         types.UID
	version     string
	terminating bool
	managers    []metav1.ManagedFieldsEntry

	source any            // what JSON is made of; it is not changed any more
	root   map[string]any // made of source when it is needed
}

// snapshotOf returns the state of an object that does not change any more: it belongs to a cache or
// was read for this.
func snapshotOf(obj client.Object) *snapshot {
	return &snapshot{
		uid: obj.GetUID(), version: obj.GetResourceVersion(), terminating: !obj.GetDeletionTimestamp().IsZero(),
		managers: obj.GetManagedFields(), source: obj,
	}
}

// snapshotOfAnswer returns the state that the API server has answered with. The step may change obj
// afterwards. It returns nil for an answer that names no version.
func snapshotOfAnswer(obj any) *snapshot {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	s := &snapshot{}
	if json.Unmarshal(data, &s.root) != nil {
		return nil
	}
	metadata, _ := s.root["metadata"].(map[string]any)
	s.version, _ = metadata["resourceVersion"].(string)
	uid, _ := metadata["uid"].(string)
	s.uid = types.UID(uid)
	if s.version == "" {
		return nil
	}
	return s
}

func (s *snapshot) content() map[string]any {
	if s.root == nil && s.source != nil {
		if data, err := json.Marshal(s.source); err == nil {
			_ = json.Unmarshal(data, &s.root) //nolint:errcheck // it was made of an object
		}
	}
	return s.root
}

// leaves returns the values that a write through a subresource can change, by their paths: those
// that are not maps, without what the API server keeps itself. A list is one value. Conditions are
// one value each, without the time of their last transition, which is another each time that a
// condition comes back.
func (s *snapshot) leaves(subresource string) map[string]any {
	all := make(map[string]any)
	for name, value := range s.content() {
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
			collectLeaves(child, pathBelow(path, key), into)
		}
		return
	}
	if value = trimmed(value); value != nil {
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
		conditions[path+"["+kind+"]"] = trimmed(c)
	}
	return conditions, true
}

// trimmed returns a value without the fields that one encoding of an object writes and another
// leaves out: those that are null, zero or empty. It returns nil if nothing is left.
func trimmed(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			if child = trimmed(child); child != nil {
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
			if out[i] = trimmed(v[i]); out[i] == nil {
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

// A change is what a write did to one field.
type change struct {
	path   string
	value  any  // after the write, nil if it is gone
	differ bool // it had another value before
}

// changes returns what the write did to the fields that it sent, sorted by their paths.
func (w *write) changes() []change {
	if w.before == nil || w.after == nil {
		return nil
	}
	before, after := w.before.leaves(w.subresource), w.after.leaves(w.subresource)
	var all []change
	for _, path := range slices.Sorted(maps.Keys(union(before, after))) {
		differ := !reflect.DeepEqual(before[path], after[path])
		// A whole object that is sent says nothing about the fields that are as they were read.
		if differ && w.fields == nil || w.fields != nil && slices.ContainsFunc(w.fields, func(f string) bool { return related(f, path) }) {
			all = append(all, change{path, after[path], differ})
		}
	}
	return all
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// related reports whether two paths are the same, or one is within the other.
func related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.' || b[len(a)] == '[')
}

// creates reports whether the object is a new one.
func (w *write) creates() bool {
	return w.verb == "create" && w.subresource == "" || w.before != nil && w.before.absent && w.after != nil
}

// numberOf returns a number for a text.
func numberOf(text []byte) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write(text) // writing to a hash never fails
	return hash.Sum64()
}

func idOf(o journal.Object) uint64 {
	return numberOf([]byte(strings.Join([]string{o.Group, o.Kind, o.Namespace, o.Name}, "\x00")))
}
