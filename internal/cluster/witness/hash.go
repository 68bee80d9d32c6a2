// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Annotation is the annotation that carries the hash of the intent with which an object was applied.
const Annotation = "apply.ctrlkit.dev/hash"

// hashSize is the number of bytes of a hash that are kept: two intents of one object must not have
// the same one, and 128 bits are enough for that.
const hashSize = 16

// Hash returns a hash of an intent, 22 characters that are allowed in an annotation:
//
//   - The order of keys does not matter, that of lists does.
//   - Values that JSON does not distinguish are equal, such as int64(1) and float64(1).
//   - [Annotation] does not count, nor do the fields of the metadata that no apply sets: uid,
//     resourceVersion, generation, creationTimestamp, selfLink and managedFields.
//
// The intent is the content of an unstructured object. A value of any other type is hashed by its
// JSON encoding, which is slower.
func Hash(intent map[string]any) string {
	h := hashers.Get().(*hasher) //nolint:errcheck // there is nothing else in the pool
	defer hashers.Put(h)
	h.data, h.keys = h.data[:0], h.keys[:0]
	h.object(intent, levelObject)
	clear(h.keys[:cap(h.keys)]) // or the pool would keep the strings of the intent
	sum := sha256.Sum256(h.data)
	return base64.RawURLEncoding.EncodeToString(sum[:hashSize])
}

var hashers = sync.Pool{New: func() any { return new(hasher) }}

// A hasher encodes a value so that different values have different encodings: each begins with a
// letter for its type, and strings, lists and objects with their length.
type hasher struct {
	data []byte
	keys []string // a stack of the keys of the objects that are being encoded
}

func (h *hasher) object(m map[string]any, at level) {
	start := len(h.keys)
	for key, value := range m {
		if at.ignores(key) || at == levelMetadata && key == "annotations" && onlyOurs(value) {
			continue
		}
		h.keys = append(h.keys, key)
	}
	end := len(h.keys)
	slices.Sort(h.keys[start:end])
	h.head('o', end-start)
	for i := start; i < end; i++ {
		key := h.keys[i] // the stack may move meanwhile
		h.text(key)
		h.value(m[key], at.below(key))
	}
	h.keys = h.keys[:start]
}

// onlyOurs reports whether annotations are only ours, which is the same as none.
func onlyOurs(annotations any) bool {
	m, ok := annotations.(map[string]any)
	_, ours := m[Annotation]
	return ok && ours && len(m) == 1
}

func (h *hasher) value(v any, at level) {
	switch v := v.(type) {
	case map[string]any:
		h.object(v, at)
	case []any:
		h.head('l', len(v))
		for _, item := range v {
			h.value(item, levelOther)
		}
	case string:
		h.text(v)
	case bool:
		if v {
			h.data = append(h.data, 't')
		} else {
			h.data = append(h.data, 'f')
		}
	case nil:
		h.data = append(h.data, 'n')
	default:
		h.other(v)
	}
}

// other encodes numbers, and what is not the content of an unstructured object.
func (h *hasher) other(v any) {
	if i, ok := integer(v); ok {
		h.data = append(h.data, 'i')
		h.data = binary.AppendVarint(h.data, i)
		return
	}
	if f, ok := v.(float64); ok {
		h.data = append(h.data, 'd')
		h.data = binary.LittleEndian.AppendUint64(h.data, math.Float64bits(f))
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		data = fmt.Appendf(nil, "%#v", v) // the apply will fail, with a better message
	}
	h.data = append(h.data, 'j')
	h.text(string(data))
}

func (h *hasher) text(s string) {
	h.head('s', len(s))
	h.data = append(h.data, s...)
}

func (h *hasher) head(kind byte, n int) {
	h.data = append(h.data, kind)
	h.data = binary.AppendUvarint(h.data, uint64(n))
}

// integer returns the value of a number that is an integer.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int:
		return int64(v), true
	case float64:
		// Beyond 2^53, not each integer has a float64 of its own.
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return int64(v), true
		}
	}
	return 0, false
}
