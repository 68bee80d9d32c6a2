// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Covers reports whether the Apply entry of the manager owns each field of an intent. It compares
// no values.
//
// No schema is needed: the entry itself shows how a list or a map is merged.
//
//   - A list or a map that the entry has as a whole is atomic: it is covered.
//   - Items of a list are found by their keys. A key that the intent leaves to its default may have
//     any value.
//   - An empty map is a field like others. An empty list is always covered: the API server does not
//     record one that it merges by item.
//   - [Annotation], and the fields that the API server never records, are not looked for.
//
// One thing the entry alone does not show: a map without a schema is recorded as a whole, too, after
// others took everything in it. So a list or a map that the entry has as a whole is not covered if
// another entry of the same API version owns something in it.
//
// The intent must not have fields that the API server drops, such as the status of a kind with that
// subresource: they would never be covered.
func Covers(managed []metav1.ManagedFieldsEntry, manager string, intent map[string]any) bool {
	own := entryOf(managed, manager)
	if own == nil || own.FieldsV1 == nil {
		return false
	}
	if version, ok := intent["apiVersion"].(string); ok && version != own.APIVersion {
		return false
	}
	w := walkers.Get().(*walker) //nolint:errcheck // there is nothing else in the pool
	defer w.release()
	w.reader, w.managed, w.own = reader{data: own.FieldsV1.GetRawBytes()}, managed, own
	return w.object(intent, levelObject) && w.end()
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// entryOf returns the entry of what a manager has applied, nil if there is none.
func entryOf(managed []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	for i := range managed {
		e := &managed[i]
		if e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.Manager == manager {
			return e
		}
	}
	return nil
}

// A walker reads an entry once and compares it with an intent on the way. Its methods return false
// as soon as the intent is not covered, or the entry can't be read. They allocate nothing, unless a
// key has unusual escapes.
type walker struct {
	reader

	managed []metav1.ManagedFieldsEntry
	own     *metav1.ManagedFieldsEntry

	path [][]byte // the members above, as the entry has them
	buf  []byte   // the key that is being read, without escapes
}

// release returns the walker to the pool, without what it has read.
func (w *walker) release() {
	clear(w.path[:cap(w.path)])
	*w = walker{path: w.path[:0], buf: w.buf[:0]}
	walkers.Put(w)
}

// value reads the node of a value.
func (w *walker) value(v any, at level) bool {
	switch v := v.(type) {
	case map[string]any:
		return w.object(v, at)
	case []any:
		return w.list(v)
	}
	return w.skip()
}

func (w *walker) object(m map[string]any, at level) bool {
	start, matched, whole := w.pos, 0, true
	for more := w.open(); more; more = w.next() {
		raw, ok := w.key()
		if !ok {
			return false
		}
		whole = whole && isSelf(raw)
		v, below, known := w.field(m, raw, at)
		if !known {
			if !w.skip() {
				return false
			}
			continue
		}
		w.path = append(w.path, raw)
		if !w.value(v, below) {
			return false
		}
		w.path = w.path[:len(w.path)-1]
		matched++
	}
	switch {
	case w.bad:
		return false
	case whole && at == levelOther:
		return len(m) == 0 || !w.isShared()
	}
	return matched == len(m)-unrecorded(m, at) || w.matchesRecorded(start, m, at)
}

// matchesRecorded reports whether the node at a position has all fields of m that the API server
// records. Only if m has empty lists, this may differ from having all fields.
func (w *walker) matchesRecorded(start int, m map[string]any, at level) bool {
	end := w.pos
	w.pos = start
	matched := 0
	for more := w.open(); more; more = w.skip() && w.next() {
		raw, ok := w.key()
		if !ok {
			return false
		}
		if v, below, known := w.field(m, raw, at); known && isRecorded(v, below) {
			matched++
		}
	}
	w.pos = end
	return matched >= recorded(m, at)
}

// unrecorded returns how many fields of a map the API server never records.
func unrecorded(m map[string]any, at level) int {
	if at == levelOther {
		return 0
	}
	n := 0
	for key := range m {
		if at.unrecorded(key) {
			n++
		}
	}
	return n
}

// field returns the field of m that a member of an entry stands for.
func (w *walker) field(m map[string]any, raw []byte, at level) (v any, below level, known bool) {
	if len(raw) < 2 || raw[0] != 'f' || raw[1] != ':' {
		return nil, 0, false
	}
	name, ok := w.unescape(raw[2:])
	if !ok {
		return nil, 0, false
	}
	v, known = m[string(name)]
	if at == levelOther || !known {
		return v, levelOther, known
	}
	key := string(name)
	return v, at.below(key), !at.unrecorded(key)
}

func (w *walker) list(items []any) bool {
	matched, whole := 0, true
	found := newBits(len(items))
	for more := w.open(); more; more = w.next() {
		raw, ok := w.key()
		if !ok {
			return false
		}
		whole = whole && isSelf(raw)
		i := w.item(items, raw, &found)
		if i < 0 {
			if !w.skip() {
				return false
			}
			continue
		}
		w.path = append(w.path, raw)
		if !w.value(items[i], levelOther) {
			return false
		}
		w.path = w.path[:len(w.path)-1]
		found.set(i)
		matched++
	}
	switch {
	case w.bad:
		return false
	case whole:
		return len(items) == 0 || !w.isShared()
	}
	return matched == len(items)
}

// item returns the index of the item that a member of an entry stands for, -1 if there is none. An
// item with all keys comes before one that leaves some to their defaults.
func (w *walker) item(items []any, raw []byte, found *bits) int {
	if len(raw) < 2 || raw[1] != ':' || raw[0] != 'v' && raw[0] != 'k' {
		return -1
	}
	text, ok := w.unescape(raw[2:])
	if !ok {
		return -1
	}
	if raw[0] == 'v' {
		for i, item := range items {
			if !found.has(i) && equals(text, item) {
				return i
			}
		}
		return -1
	}
	keys, ok := parseKeys(text)
	if !ok {
		return -1
	}
	partial := -1
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok || found.has(i) {
			continue
		}
		switch keys.match(m) {
		case matchAll:
			return i
		case matchSome:
			if partial < 0 {
				partial = i
			}
		}
	}
	return partial
}

// isShared reports whether another entry owns something in the list or map that ours has as a whole.
func (w *walker) isShared() bool {
	return sharedBelow(w.managed, w.own, w.path)
}

// sharedBelow reports whether an entry other than own, of its API version, has a member below a path.
func sharedBelow(managed []metav1.ManagedFieldsEntry, own *metav1.ManagedFieldsEntry, path [][]byte) bool {
	for i := range managed {
		e := &managed[i]
		if e == own || e.APIVersion != own.APIVersion || e.FieldsV1 == nil {
			continue
		}
		r := reader{data: e.FieldsV1.GetRawBytes()}
		if r.descend(path) && r.hasMembers() {
			return true
		}
	}
	return false
}

// recorded returns how many fields of a map the API server records.
func recorded(m map[string]any, at level) int {
	n := 0
	for key, v := range m {
		if !at.unrecorded(key) && isRecorded(v, at.below(key)) {
			n++
		}
	}
	return n
}

// isRecorded reports whether the API server records something of a value, however its kind is
// merged.
func isRecorded(v any, at level) bool {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return at != levelMetadata
		}
		for key, field := range v {
			if !at.unrecorded(key) && isRecorded(field, at.below(key)) {
				return true
			}
		}
		return false
	case []any:
		return len(v) > 0
	}
	return true
}

// bits is a set of small numbers.
type bits struct {
	first uint64
	more  []uint64
}

func newBits(n int) bits {
	if n <= 64 {
		return bits{}
	}
	return bits{more: make([]uint64, n/64)}
}

func (b *bits) word(i int) *uint64 {
	if i < 64 {
		return &b.first
	}
	return &b.more[i/64-1]
}

func (b *bits) has(i int) bool { return *b.word(i)&(1<<(i%64)) != 0 }
func (b *bits) set(i int)      { *b.word(i) |= 1 << (i % 64) }
