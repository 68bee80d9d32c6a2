// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A merge combines the changes of two clients to the same JSON value.
type merge struct {
	both []string // the paths that both clients have changed, to different values
}

// values returns theirs with what ours has changed of base. Maps are merged by key, the lists that
// several clients write by the key of their items; any other list is one value.
func (m *merge) values(path string, base, ours, theirs any) any {
	switch {
	case reflect.DeepEqual(ours, base):
		return theirs
	case reflect.DeepEqual(theirs, base) || reflect.DeepEqual(ours, theirs):
		return ours
	}
	baseMap, _ := base.(map[string]any)
	ourMap, ok1 := ours.(map[string]any)
	theirMap, ok2 := theirs.(map[string]any)
	if (ok1 || ours == nil) && (ok2 || theirs == nil) { // nothing is an empty map
		return m.maps(path, baseMap, ourMap, theirMap)
	}
	if key := keyOf(path); key != nil {
		o, ok1 := keyed(ours, key)
		t, ok2 := keyed(theirs, key)
		b, ok3 := keyed(base, key)
		if ok1 && ok2 && ok3 {
			return m.lists(path, b, o, t)
		}
	}
	m.both = append(m.both, path)
	return theirs
}

func (m *merge) maps(path string, base, ours, theirs map[string]any) any {
	merged := make(map[string]any)
	for _, key := range keysOf(ours, theirs) {
		if v := m.values(path+"."+key, base[key], ours[key], theirs[key]); v != nil {
			merged[key] = v
		}
	}
	return merged
}

// keysOf returns the keys of both maps, sorted.
func keysOf(a, b map[string]any) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// A keyedList is a list of which each item has a key of its own.
type keyedList struct {
	keys  []string
	items map[string]any
}

// lists merges two lists item by item: ours in their order, then what the other client has added.
func (m *merge) lists(path string, base, ours, theirs keyedList) any {
	var merged []any
	added := slices.DeleteFunc(slices.Clone(theirs.keys), func(key string) bool { return slices.Contains(ours.keys, key) })
	for _, key := range slices.Concat(ours.keys, added) {
		if v := m.item(fmt.Sprintf("%s[%s]", path, key), base.items[key], ours.items[key], theirs.items[key]); v != nil {
			merged = append(merged, v)
		}
	}
	if merged == nil {
		return nil
	}
	return merged
}

// item merges an item of a list, which is one value: reason, message and status of a condition
// belong together. Conditions that say the same are equal, whenever they began to; theirs is older.
func (m *merge) item(path string, base, ours, theirs any) any {
	switch {
	case reflect.DeepEqual(ours, base) || reflect.DeepEqual(timeless(ours), timeless(theirs)):
		return theirs
	case !reflect.DeepEqual(timeless(theirs), timeless(base)):
		m.both = append(m.both, path)
	}
	return withTimeOf(ours, theirs)
}

// withTimeOf returns a condition with the transition time of another one if both have the same
// status; any other item as it is.
func withTimeOf(ours, theirs any) any {
	o, ok1 := ours.(map[string]any)
	t, ok2 := theirs.(map[string]any)
	if !ok1 || !ok2 || t["lastTransitionTime"] == nil || o["status"] != t["status"] {
		return ours
	}
	o = maps.Clone(o)
	o["lastTransitionTime"] = t["lastTransitionTime"]
	return o
}

// timeless returns a condition without its time; anything else as it is.
func timeless(item any) any {
	if c, ok := item.(map[string]any); ok && c["lastTransitionTime"] != nil {
		c = maps.Clone(c)
		delete(c, "lastTransitionTime")
		return c
	}
	return item
}

// keyOf returns what identifies the items of a list, nil if the list is one value.
func keyOf(path string) func(item any) (string, bool) {
	field := func(name string) func(any) (string, bool) {
		return func(item any) (string, bool) {
			m, _ := item.(map[string]any)
			key, ok := m[name].(string)
			return key, ok
		}
	}
	switch path {
	case ".metadata.finalizers":
		return func(item any) (string, bool) { key, ok := item.(string); return key, ok }
	case ".metadata.ownerReferences":
		return field("uid")
	case ".status.conditions":
		return field("type")
	}
	return nil
}

// keyed returns a list by keys. It is none if an item has no key or two have the same.
func keyed(list any, key func(any) (string, bool)) (keyedList, bool) {
	k := keyedList{items: make(map[string]any)}
	if list == nil {
		return k, true
	}
	items, ok := list.([]any)
	for _, item := range items {
		name, has := key(item)
		if _, twice := k.items[name]; !has || twice {
			return k, false
		}
		k.keys, k.items[name] = append(k.keys, name), item
	}
	return k, ok
}

// difference returns the merge patch that turns from into to, and reports whether there is one.
func difference(from, to any) (any, bool) {
	if reflect.DeepEqual(from, to) {
		return nil, false
	}
	fromMap, ok1 := from.(map[string]any)
	toMap, ok2 := to.(map[string]any)
	if !ok2 || !ok1 && from != nil {
		return to, true
	}
	patch := make(map[string]any)
	for _, key := range keysOf(fromMap, toMap) {
		if d, changed := difference(fromMap[key], toMap[key]); changed {
			patch[key] = d
		}
	}
	return patch, true
}

// mergePatch returns the merge patch that turns one object into another of the same type. Only the
// fields of the object that differ are encoded, which is mostly the status and not the spec.
func mergePatch(from, to client.Object) (map[string]any, error) {
	before, after, ok := reflect.ValueOf(from), reflect.ValueOf(to), false
	if before.Kind() == reflect.Pointer && before.Elem().Kind() == reflect.Struct {
		before, after, ok = before.Elem(), after.Elem(), true
	}
	patch := make(map[string]any)
	for i := 0; ok && i < before.NumField(); i++ {
		field := before.Type().Field(i)
		if !field.IsExported() || reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if ok = name != ""; !ok {
			break // a field that is inlined
		}
		a, err1 := jsonOf(before.Field(i).Interface())
		b, err2 := jsonOf(after.Field(i).Interface())
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		if d, changed := difference(a, b); changed {
			patch[name] = d
		}
	}
	if ok {
		return patch, nil
	}
	a, err1 := jsonOf(from)
	b, err2 := jsonOf(to)
	d, _ := difference(a, b)
	patch, _ = d.(map[string]any)
	return patch, errors.Join(err1, err2)
}

// jsonOf returns a value as JSON has it, with large integers exact.
func jsonOf(value any) (decoded any, err error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("marshaling the object: %w", err)
	}
	if err := utiljson.Unmarshal(data, &decoded); err != nil {
		return nil, fmt.Errorf("unmarshaling the object: %w", err)
	}
	return decoded, nil
}

// adds reports whether metadata has a finalizer that it did not have before.
func adds(before, metadata any) bool {
	finalizers := func(metadata any) []any {
		m, _ := metadata.(map[string]any)
		all, _ := m["finalizers"].([]any)
		return all
	}
	return slices.ContainsFunc(finalizers(metadata), func(f any) bool { return !slices.Contains(finalizers(before), f) })
}

// treeOf returns an object as JSON has it.
func treeOf(obj any) (map[string]any, error) {
	decoded, err := jsonOf(obj)
	if err != nil {
		return nil, err
	}
	tree, _ := decoded.(map[string]any)
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(key string, _ any) bool { return !slices.Contains(writable, key) })
	}
	return tree, nil
}
