// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// managers returns the field managers that have given the fields the values that our write has
// replaced, the one that wrote last first: at most three. Of an object that we delete they are
// those that have written it. Ours are left out, unless there is no other.
func (l *Loop) managers(ours []string) []string {
	w := l.Write
	if w.Before == nil || w.Before.Absent {
		return nil
	}
	entries := slices.Clone(w.Before.Managers)
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
	if len(others) == 0 && len(l.Paths) > 0 {
		return own
	}
	return others
}

const mostManagers = 3

// blames reports whether the fields of a manager are among those that are fought over.
func (l *Loop) blames(e metav1.ManagedFieldsEntry) bool {
	if len(l.Paths) == 0 {
		return true
	}
	set := &fieldpath.Set{}
	if e.FieldsV1 == nil || set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
		return false
	}
	w := l.Write
	return l.owns(set, "", w.Before.Content(), afterOf(w))
}

// afterOf returns what the write made of the object.
func afterOf(w *track.Write) any {
	if w.After == nil {
		return nil
	}
	return w.After.Content()
}

// owns reports whether a set has a field that is fought over, and that had another value before the
// write than after it. Path is the path of the set, and before and after are the values there.
func (l *Loop) owns(set *fieldpath.Set, path string, before, after any) bool {
	if !slices.ContainsFunc(l.Paths, func(p string) bool { return path == "" || track.Related(p, path) }) {
		return false
	}
	owns := false
	set.Members.Iterate(func(element fieldpath.PathElement) {
		if _, ok := set.Children.Get(element); ok {
			return // it owns that the map or item is there; what it owns in it comes below
		}
		b, ok := find(before, element)
		a, _ := find(after, element)
		owns = owns || ok && l.disputes(pathOf(path, element)) && !reflect.DeepEqual(track.Trimmed(b), track.Trimmed(a))
	})
	set.Children.Iterate(func(element fieldpath.PathElement) {
		child, _ := set.Children.Get(element)
		b, ok := find(before, element)
		a, _ := find(after, element)
		owns = owns || ok && l.owns(child, pathOf(path, element), b, a)
	})
	return owns
}

func (l *Loop) disputes(path string) bool {
	return slices.ContainsFunc(l.Paths, func(p string) bool { return track.Related(p, path) })
}

// pathOf returns the path of an element as leaves are named: an item of a list has the path of the
// list, and a condition that of its type.
func pathOf(path string, element fieldpath.PathElement) string {
	switch {
	case element.FieldName != nil:
		return track.PathBelow(path, *element.FieldName)
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
