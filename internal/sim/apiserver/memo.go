// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"hash/maphash"
	"reflect"
	"sync"
)

// Thousands of plans make the same requests up to the place where their fault strikes, and mostly
// after it, too. So servers share the results of what is expensive and pure: decoding and encoding,
// checking an object against its schema, and finding who manages its fields. A result is used only
// if all inputs are equal, not just their hashes, and it is immutable or copied for each user, so
// that nothing but the time that a request takes depends on what other servers have done.

// memo holds results of one function by its inputs: values as JSON decoders return them, and
// comparable ones.
type memo struct {
	mu       sync.Mutex // guards what follows
	young    map[uint64]*memoized
	old      map[uint64]*memoized // replaced by young when that is full
	capacity int
}

type memoized struct {
	inputs []any
	result any // immutable
}

func newMemo(capacity int) *memo { return &memo{young: map[uint64]*memoized{}, capacity: capacity} }

// inputs are the inputs of a function with their hash. They must not change until they were used.
type inputs struct {
	values []any
	hash   uint64
}

func inputsOf(values ...any) inputs {
	var h uint64
	for _, v := range values {
		h = h*31 + hashOf(v)
	}
	return inputs{values, h}
}

// find returns the result for the inputs, if it is known.
func (m *memo) find(in inputs) (result any, ok bool) {
	m.mu.Lock()
	found := m.young[in.hash]
	if found == nil {
		if found = m.old[in.hash]; found != nil {
			m.put(in.hash, found)
		}
	}
	m.mu.Unlock()
	if found == nil || len(found.inputs) != len(in.values) {
		return nil, false
	}
	for i, v := range in.values {
		if !equal(v, found.inputs[i]) {
			return nil, false
		}
	}
	return found.result, true
}

// add records a result, which must not be modified any more.
func (m *memo) add(in inputs, result any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(in.hash, &memoized{in.values, result})
}

func (m *memo) put(hash uint64, known *memoized) {
	if len(m.young) >= m.capacity {
		m.young, m.old = map[uint64]*memoized{}, m.young
	}
	m.young[hash] = known
}

// clone returns inputs that do not change when the objects among them do.
func (in inputs) clone() inputs {
	values := make([]any, len(in.values))
	for i, v := range in.values {
		values[i] = clone(v)
	}
	return inputs{values, in.hash}
}

var memoSeed = maphash.MakeSeed()

// hashOf returns a hash of a value. That of a map does not depend on the order of its keys.
func hashOf(value any) uint64 {
	switch v := value.(type) {
	case map[string]any:
		h := uint64(len(v)) + 0x9e3779b97f4a7c15
		for key, child := range v {
			h += mix(maphash.String(memoSeed, key) ^ mix(hashOf(child)+1))
		}
		return h
	case []any:
		h := uint64(len(v)) + 0xc2b2ae3d27d4eb4f
		for _, child := range v {
			h = mix(h*31 + hashOf(child))
		}
		return h
	case string:
		return maphash.String(memoSeed, v)
	case nil:
		return 1
	}
	if !reflect.TypeOf(value).Comparable() {
		return 2
	}
	return maphash.Comparable(memoSeed, value)
}

func mix(h uint64) uint64 {
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h ^ h>>32
}

// equal reports whether two values are equal, as reflect.DeepEqual does for values that JSON decoders
// return. What is neither such a value nor comparable equals nothing.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) || (x == nil) != (y == nil) {
			return false
		}
		if reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer() {
			return true
		}
		for key, child := range x {
			if other, ok := y[key]; !ok || !equal(child, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) || (x == nil) != (y == nil) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	if a == nil || b == nil {
		return a == b
	}
	return reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// clone returns a copy of a value that JSON decoders return, or of a comparable one.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return cloneMap(v)
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = clone(child)
		}
		return out
	}
	return value
}

func cloneMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for key, child := range m {
		out[key] = clone(child)
	}
	return out
}
