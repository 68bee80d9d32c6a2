// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A Gap is a field of an intent that our entry does not cover.
type Gap struct {
	// Path is the field, such as "spec.replicas" or `spec.ports[port=80].name`. It is empty if
	// nothing of the intent is recorded as applied by the manager, in the API version of the intent.
	Path string

	// By is the manager of the newest other entry that owns the field or something in it. It is
	// empty if there is none: the field was removed, or the entry is not in the cache.
	By string

	// Subresource is that of the other entry, such as "scale".
	Subresource string
}

// String returns a sentence without a period, such as
// "spec.replicas is no longer ours: last written by kubectl (scale)".
func (g Gap) String() string {
	if g.Path == "" {
		return "no apply of ours is recorded"
	}
	if g.By == "" {
		return g.Path + " is no longer ours"
	}
	by := g.By
	if g.Subresource != "" {
		by += " (" + g.Subresource + ")"
	}
	return g.Path + " is no longer ours: last written by " + by
}

// Why returns the first field, in the order of names, for which [Covers] returns false, and whether
// there is one. It is slower by far, and meant for people.
func Why(managed []metav1.ManagedFieldsEntry, manager string, intent map[string]any) (Gap, bool) {
	own := entryOf(managed, manager)
	if own == nil || own.FieldsV1 == nil {
		return Gap{}, true
	}
	if version, ok := intent["apiVersion"].(string); ok && version != own.APIVersion {
		return Gap{}, true
	}
	set, err := fields(own)
	if err != nil {
		return Gap{}, true
	}
	s := search{managed: managed, own: own}
	if s.object(nil, set, intent, levelObject) {
		return Gap{}, false
	}
	gap := Gap{Path: s.gap.String()}
	if len(gap.Path) > 0 && gap.Path[0] == '.' {
		gap.Path = gap.Path[1:]
	}
	gap.By, gap.Subresource = s.writer()
	return gap, true
}

func fields(e *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if e.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(e.FieldsV1.GetRawReader())
}

// A search does what a walker does, with the set that the API server has made of the entry, and
// stops at the first gap.
type search struct {
	managed []metav1.ManagedFieldsEntry
	own     *metav1.ManagedFieldsEntry
	gap     fieldpath.Path
}

// node looks for a value at pe, of which set has the siblings.
func (s *search) node(path fieldpath.Path, set *fieldpath.Set, pe fieldpath.PathElement, v any, at level) bool {
	if !isRecorded(v, at) {
		return true
	}
	path = append(path[:len(path):len(path)], pe)
	below := set.WithPrefix(pe)
	if below.Empty() && !set.Members.Has(pe) {
		s.gap = path
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return s.object(path, below, v, at)
	case []any:
		return s.list(path, below, v)
	}
	return true
}

func (s *search) object(path fieldpath.Path, set *fieldpath.Set, m map[string]any, at level) bool {
	if set.Empty() && at == levelOther {
		return s.whole(path, len(m) == 0)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !at.unrecorded(key) && !s.node(path, set, fieldpath.PathElement{FieldName: &key}, m[key], at.below(key)) {
			return false
		}
	}
	return true
}

func (s *search) list(path fieldpath.Path, set *fieldpath.Set, items []any) bool {
	if set.Empty() {
		return s.whole(path, len(items) == 0)
	}
	taken := make([]bool, len(items))
	for _, pe := range firsts(set) {
		if i := find(items, pe, taken); i >= 0 {
			taken[i] = true
			if !s.node(path, set, pe, items[i], levelOther) {
				return false
			}
		}
	}
	for i := range taken {
		if !taken[i] {
			s.gap = append(path[:len(path):len(path)], elementOf(set, items[i], i))
			return false
		}
	}
	return true
}

// whole reports whether a list or map that our entry has as a whole is covered.
func (s *search) whole(path fieldpath.Path, empty bool) bool {
	if empty {
		return true
	}
	for i := range s.managed {
		e := &s.managed[i]
		if e == s.own || e.APIVersion != s.own.APIVersion {
			continue
		}
		if set, err := fields(e); err == nil && !at(set, path).Empty() {
			s.gap = path
			return false
		}
	}
	return true
}

// writer returns the manager of the newest other entry that owns the gap, something in it, or what
// it is in as a whole.
func (s *search) writer() (manager, subresource string) {
	var newest *metav1.ManagedFieldsEntry
	for i := range s.managed {
		e := &s.managed[i]
		set, err := fields(e)
		if e == s.own || err != nil || !owns(set, s.gap) {
			continue
		}
		if newest == nil || newest.Time.Before(e.Time) {
			newest = e
		}
	}
	if newest == nil {
		return "", ""
	}
	return newest.Manager, newest.Subresource
}

func owns(set *fieldpath.Set, path fieldpath.Path) bool {
	if !at(set, path).Empty() {
		return true
	}
	for n := len(path); n > 0; n-- {
		// A member without members below is owned as a whole.
		if set.Has(path[:n]) && (n == len(path) || at(set, path[:n]).Empty()) {
			return true
		}
	}
	return false
}

func at(set *fieldpath.Set, path fieldpath.Path) *fieldpath.Set {
	for _, pe := range path {
		set = set.WithPrefix(pe)
	}
	return set
}

// firsts returns the members of a set, without what is below them.
func firsts(set *fieldpath.Set) []fieldpath.PathElement {
	var pes []fieldpath.PathElement
	set.Iterate(func(p fieldpath.Path) {
		if len(pes) == 0 || !pes[len(pes)-1].Equals(p[0]) {
			pes = append(pes, p[0].Copy())
		}
	})
	slices.SortFunc(pes, fieldpath.PathElement.Compare)
	return slices.CompactFunc(pes, fieldpath.PathElement.Equals)
}

// find returns the index of an item, as walker.item does.
func find(items []any, pe fieldpath.PathElement, taken []bool) int {
	partial := -1
	for i, item := range items {
		switch {
		case taken[i]:
		case pe.Value != nil && value.Equals(*pe.Value, value.NewValueInterface(item)):
			return i
		case pe.Key != nil:
			m, ok := item.(map[string]any)
			if !ok {
				continue
			}
			switch matches(m, *pe.Key) {
			case matchAll:
				return i
			case matchSome:
				if partial < 0 {
					partial = i
				}
			}
		}
	}
	return partial
}

func matches(item map[string]any, key value.FieldList) match {
	m := matchAll
	for _, f := range key {
		v, ok := item[f.Name]
		switch {
		case !ok:
			m = matchSome
		case !value.Equals(f.Value, value.NewValueInterface(v)):
			return matchNone
		}
	}
	return m
}

// elementOf names an item that is not found, by the keys that the others have.
func elementOf(set *fieldpath.Set, item any, index int) fieldpath.PathElement {
	m, ok := item.(map[string]any)
	if !ok {
		v := value.NewValueInterface(item)
		return fieldpath.PathElement{Value: &v}
	}
	for _, pe := range firsts(set) {
		if pe.Key == nil {
			continue
		}
		key := value.FieldList{}
		for _, f := range *pe.Key {
			if v, ok := m[f.Name]; ok {
				key = append(key, value.Field{Name: f.Name, Value: value.NewValueInterface(v)})
			}
		}
		return fieldpath.PathElement{Key: &key}
	}
	return fieldpath.PathElement{Index: &index}
}
