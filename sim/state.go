// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// An Object is one of a world, as it is compared with that of another world.
type Object struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string // with "*" for what the server has generated
	Content   map[string]any
}

// snapshot is a world at rest: for each thing in it ("configmaps default/x", "buckets b1") its fields by path.
type snapshot map[string]map[string]string

// snapshot takes the world as it is, with everything taken out of it that differs between worlds for no reason.
func (w *World) snapshot() snapshot {
	replacer := w.symbols()
	s := snapshot{}
	for _, o := range w.server.Objects() {
		if ignored(o.Resource) || unremarkable(o.Resource, o.Name) {
			continue
		}
		obj := Object{Resource: o.Resource, Namespace: o.Namespace, Name: canonicalName(o.Name, o.Content), Content: cloneJSON(o.Content)}
		if w.workload.Normalize != nil && !w.workload.Normalize(&obj) {
			continue
		}
		fields := map[string]string{}
		normalize(&obj)
		flatten("", obj.Content, fields, replacer)
		s.add(replacer.Replace(objectName(obj.Resource, obj.Namespace, obj.Name)), fields)
	}
	for _, name := range slices.Sorted(maps.Keys(w.externals)) {
		for _, e := range w.externals[name].sorted() {
			fields := map[string]string{}
			flatten("tags", stringsToAny(e.Tags), fields, replacer)
			flatten("spec", stringsToAny(e.Spec), fields, replacer)
			fields["name"] = replacer.Replace(e.Resource.Name)
			if e.owner != "" {
				fields["owner"] = replacer.Replace(string(e.owner))
			}
			s.add("external "+name+" "+replacer.Replace(e.ID), fields)
		}
	}
	return s
}

// add adds a thing. Things that can't be told apart are numbered, in an order that does not depend on names that the server has made.
func (s snapshot) add(name string, fields map[string]string) {
	if _, taken := s[name]; !taken {
		s[name] = fields
		return
	}
	list := []map[string]string{fields}
	for i := 1; ; i++ {
		key := name
		if i > 1 {
			key = name + " #" + strconv.Itoa(i)
		}
		other, ok := s[key]
		if !ok {
			break
		}
		list = append(list, other)
	}
	slices.SortFunc(list, func(a, b map[string]string) int { return cmp.Compare(textOf(a), textOf(b)) })
	for i, f := range list {
		key := name
		if i > 0 {
			key = name + " #" + strconv.Itoa(i+1)
		}
		s[key] = f
	}
}

func textOf(fields map[string]string) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		b.WriteString(path + "=" + fields[path] + "\n")
	}
	return b.String()
}

// unremarkable are objects that a cluster has without anybody's doing.
func unremarkable(r schema.GroupVersionResource, name string) bool {
	switch r.Resource {
	case "namespaces":
		return name == "default" || strings.HasPrefix(name, "kube-")
	case "customresourcedefinitions":
		return true
	}
	return false
}

// symbols replaces what the world has minted by what it was minted for: UIDs, generated names, ids of external resources.
func (w *World) symbols() *strings.Replacer {
	var pairs []string
	for _, uid := range slices.Sorted(maps.Keys(w.uids)) {
		text := "uid(" + w.uids[uid] + ")"
		if w.live[uid] == nil {
			text = "former " + text
		}
		pairs = append(pairs, string(uid), text)
	}
	for _, name := range slices.Sorted(maps.Keys(w.generated)) {
		pairs = append(pairs, name, w.generated[name])
	}
	for _, system := range slices.Sorted(maps.Keys(w.externals)) {
		s := w.externals[system]
		if s.Identity == IdentityName {
			continue
		}
		for _, e := range s.sorted() {
			pairs = append(pairs, e.ID, system+"-of-"+w.uids[e.owner])
		}
	}
	return strings.NewReplacer(pairs...)
}

// normalize takes out of an object what the server and time have put there.
func normalize(o *Object) {
	u := unstructured.Unstructured{Object: o.Content}
	generation := u.GetGeneration()
	metadata, _ := o.Content["metadata"].(map[string]any)
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "selfLink"} {
		delete(metadata, field)
	}
	metadata["name"] = o.Name
	for _, field := range []string{"annotations", "labels"} {
		m, _ := metadata[field].(map[string]any)
		maps.DeleteFunc(m, func(key string, _ any) bool { return strings.HasPrefix(key, marks) })
		if len(m) == 0 {
			delete(metadata, field)
		}
	}
	if finalizers, ok := metadata["finalizers"].([]any); ok {
		slices.SortFunc(finalizers, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	if status, ok := o.Content["status"].(map[string]any); ok {
		relative(status, generation)
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if condition, ok := c.(map[string]any); ok {
				relative(condition, generation)
			}
		}
	}
}

// relative says how far an observed generation is behind.
func relative(m map[string]any, generation int64) {
	switch observed := m["observedGeneration"].(type) {
	case int64:
		if observed == generation {
			m["observedGeneration"] = "current"
		} else {
			m["observedGeneration"] = fmt.Sprintf("%d behind", generation-observed)
		}
	}
}

func canonicalName(name string, content map[string]any) string {
	metadata, _ := content["metadata"].(map[string]any)
	if generate, ok := metadata["generateName"].(string); ok && generate != "" && strings.HasPrefix(name, generate) {
		return generate + "*"
	}
	return name
}

// flatten writes the leaves of a value by their paths. Elements of lists that have a type or a name are told apart by it.
func flatten(path string, value any, into map[string]string, replacer *strings.Replacer) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 && path != "" {
			into[path] = "{}"
		}
		for k, child := range v {
			flatten(path+"."+k, child, into, replacer)
		}
	case []any:
		if len(v) == 0 {
			into[path] = "[]"
		}
		for i, child := range v {
			flatten(path+"["+elementKey(i, child)+"]", child, into, replacer)
		}
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			v = "<time>"
		}
		into[path] = replacer.Replace(v)
	default:
		data, err := json.Marshal(v)
		if err != nil {
			data = fmt.Append(nil, v)
		}
		into[path] = string(data)
	}
}

func elementKey(i int, element any) string {
	if m, ok := element.(map[string]any); ok {
		for _, key := range []string{"type", "name", "key"} {
			if s, ok := m[key].(string); ok {
				return s
			}
		}
	}
	return strconv.Itoa(i)
}

// diff lists what differs between two worlds, ordered, without what the mask hides.
func (want snapshot) diff(got snapshot, mask map[string]bool) []oracle.Difference {
	var list []oracle.Difference
	for _, thing := range unionOfKeys(want, got) {
		a, inWant := want[thing]
		b, inGot := got[thing]
		switch {
		case !inGot:
			list = append(list, oracle.Difference{Thing: thing, Want: "there"})
		case !inWant:
			list = append(list, oracle.Difference{Thing: thing, Got: "there"})
		default:
			for _, path := range unionOfKeys(a, b) {
				if a[path] != b[path] {
					list = append(list, oracle.Difference{Thing: thing, Path: path, Want: a[path], Got: b[path]})
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(d oracle.Difference) bool { return mask[maskKey(d)] })
}

// maskKey names the field of a difference, for masks.
func maskKey(d oracle.Difference) string { return d.Thing + " " + d.Path }

func unionOfKeys[V any](a, b map[string]V) []string {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

func stringsToAny(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// cloneJSON copies a tree of JSON values.
func cloneJSON(m map[string]any) map[string]any {
	return cloneValue(m).(map[string]any)
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for k, child := range v {
			out[k] = cloneValue(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = cloneValue(child)
		}
		return out
	}
	return v
}

// sorted returns the resources ordered by id.
func (s *inventory) sorted() []*entry {
	list := make([]*entry, 0, len(s.resources))
	for _, id := range slices.Sorted(maps.Keys(s.resources)) {
		list = append(list, s.resources[id])
	}
	return list
}

type uidOf = types.UID
