// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// managers returns the field managers that have given the fields the values that our write has
// replaced, the one that wrote last first: at most three. Of an object that we delete they are
// those that have written it. Ours are left out, unless there is no other.
func (l *loop) managers(ours []string) []string {
	w := l.write
	if w.before == nil || w.before.absent {
		return nil
	}
	entries := slices.Clone(w.before.managers)
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return timeOf(b).Compare(timeOf(a)) })
	var others, own []string
	for _, e := range entries {
		if !l.blames(e) {
			continue
		}
		to := &others
		if slices.Contains(ours, e.Manager) {
			to = &own
		}
		if !slices.Contains(*to, e.Manager) && len(*to) < mostManagers {
			*to = append(*to, e.Manager)
		}
	}
	if len(others) == 0 && len(l.paths) > 0 {
		return own
	}
	return others
}

const mostManagers = 3

// blames reports whether the fields of a manager are among those that are fought over.
func (l *loop) blames(e metav1.ManagedFieldsEntry) bool {
	if len(l.paths) == 0 {
		return true
	}
	set := &fieldpath.Set{}
	if e.FieldsV1 == nil || set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
		return false
	}
	w := l.write
	return l.owns(set, "", w.before.content(), afterOf(w))
}

// afterOf returns what the write made of the object.
func afterOf(w *write) any {
	if w.after == nil {
		return nil
	}
	return w.after.content()
}

// owns reports whether a set has a field that is fought over, and that had another value before the
// write than after it. Path is the path of the set, and before and after are the values there.
func (l *loop) owns(set *fieldpath.Set, path string, before, after any) bool {
	if !slices.ContainsFunc(l.paths, func(p string) bool { return path == "" || related(p, path) }) {
		return false
	}
	owns := false
	set.Members.Iterate(func(element fieldpath.PathElement) {
		if _, ok := set.Children.Get(element); ok {
			return // it owns that the map or item is there; what it owns in it comes below
		}
		b, ok := find(before, element)
		a, _ := find(after, element)
		owns = owns || ok && l.disputes(pathOf(path, element)) && !reflect.DeepEqual(trimmed(b), trimmed(a))
	})
	set.Children.Iterate(func(element fieldpath.PathElement) {
		child, _ := set.Children.Get(element)
		b, ok := find(before, element)
		a, _ := find(after, element)
		owns = owns || ok && l.owns(child, pathOf(path, element), b, a)
	})
	return owns
}

func (l *loop) disputes(path string) bool {
	return slices.ContainsFunc(l.paths, func(p string) bool { return related(p, path) })
}

// pathOf returns the path of an element as leaves are named: an item of a list has the path of the
// list, and a condition that of its type.
func pathOf(path string, element fieldpath.PathElement) string {
	switch {
	case element.FieldName != nil:
		return pathBelow(path, *element.FieldName)
	case path == ".status.conditions" && element.Key != nil && len(*element.Key) == 1:
		if kind, ok := (*element.Key)[0].Value.Unstructured().(string); ok {
			return path + "[" + kind + "]"
		}
	}
	return path
}

// find returns what an element stands for in a value.
func find(in any, element fieldpath.PathElement) (any, bool) {
	if element.FieldName != nil {
		node, _ := in.(map[string]any)
		v, ok := node[*element.FieldName]
		return v, ok
	}
	list, _ := in.([]any)
	switch {
	case element.Index != nil && *element.Index < len(list):
		return list[*element.Index], true
	case element.Value != nil:
		i := slices.IndexFunc(list, func(item any) bool { return same(*element.Value, item) })
		if i >= 0 {
			return list[i], true
		}
	case element.Key != nil:
		i := slices.IndexFunc(list, func(item any) bool {
			node, _ := item.(map[string]any)
			return node != nil && !slices.ContainsFunc(*element.Key, func(f value.Field) bool { return !same(f.Value, node[f.Name]) })
		})
		if i >= 0 {
			return list[i], true
		}
	}
	return nil, false
}

func same(v value.Value, item any) bool { return value.Equals(v, value.NewValueInterface(item)) }

func timeOf(e metav1.ManagedFieldsEntry) time.Time {
	if e.Time == nil {
		return time.Time{}
	}
	return e.Time.Time
}
