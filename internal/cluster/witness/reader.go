// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// A reader reads the fields of an entry, which are nested JSON objects, without decoding them:
//
//	{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}
//
// The object that a member has as its value is called its node.
type reader struct {
	data []byte
	pos  int
	bad  bool // what was read is not such an object
}

// open enters a node and reports whether it has a member.
func (r *reader) open() bool {
	if r.peek() != '{' {
		r.bad = true
		return false
	}
	r.pos++
	if r.peek() == '}' {
		r.pos++
		return false
	}
	return true
}

// next follows the node of a member and reports whether another member comes. If not, it has left
// the node of both.
func (r *reader) next() bool {
	switch r.peek() {
	case ',':
		r.pos++
		return true
	case '}':
		r.pos++
		return false
	}
	r.bad = true
	return false
}

// key reads the key of a member, and returns it without its quotes but with its escapes.
func (r *reader) key() ([]byte, bool) {
	if r.peek() != '"' {
		r.bad = true
		return nil, false
	}
	start := r.pos + 1
	if !r.text() || r.peek() != ':' {
		r.bad = true
		return nil, false
	}
	end := bytes.LastIndexByte(r.data[:r.pos], '"') // there may be space before the colon
	r.pos++
	return r.data[start:end], true
}

// text skips a string.
func (r *reader) text() bool {
	for r.pos++; r.pos < len(r.data); r.pos++ {
		switch r.data[r.pos] {
		case '\\':
			r.pos++
		case '"':
			r.pos++
			return true
		}
	}
	r.bad = true
	return false
}

// skip skips a node.
func (r *reader) skip() bool {
	if r.peek() != '{' {
		r.bad = true
		return false
	}
	for depth := 0; r.pos < len(r.data); {
		switch r.data[r.pos] {
		case '{':
			depth++
		case '}':
			depth--
		case '"':
			if !r.text() {
				return false
			}
			continue
		}
		r.pos++
		if depth == 0 {
			return true
		}
	}
	r.bad = true
	return false
}

// end reports whether everything was read.
func (r *reader) end() bool { return r.peek() == 0 && r.pos >= len(r.data) && !r.bad }

// peek returns the next byte that is no space, zero at the end.
func (r *reader) peek() byte {
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// descend goes to the node at a path, and reports whether there is one.
func (r *reader) descend(path [][]byte) bool {
	for _, key := range path {
		if !r.find(key) {
			return false
		}
	}
	return true
}

// find enters a node and goes to that of a member, and reports whether there is one.
func (r *reader) find(want []byte) bool {
	for more := r.open(); more; more = r.skip() && r.next() {
		key, ok := r.key()
		if !ok {
			return false
		}
		if bytes.Equal(key, want) {
			return true
		}
	}
	return false
}

// hasMembers enters a node and reports whether it has members besides itself.
func (r *reader) hasMembers() bool {
	for more := r.open(); more; more = r.skip() && r.next() {
		key, ok := r.key()
		if !ok {
			return false
		}
		if !isSelf(key) {
			return true
		}
	}
	return false
}

// isSelf reports whether a member stands for the value that has the node.
func isSelf(key []byte) bool { return len(key) == 1 && key[0] == '.' }

// unescape returns a string without its escapes, valid until the next call.
func (w *walker) unescape(raw []byte) ([]byte, bool) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	w.buf = w.buf[:0]
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '\\' && i+1 < len(raw) {
			if i++; raw[i] != '"' && raw[i] != '\\' && raw[i] != '/' {
				return unquote(raw)
			}
			c = raw[i]
		}
		w.buf = append(w.buf, c)
	}
	return w.buf, true
}

// unquote is unescape for any escapes.
func unquote(raw []byte) ([]byte, bool) {
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	var s string
	err := json.Unmarshal(quoted, &s)
	return []byte(s), err == nil
}

// keys are the fields by which an item is found in its list. API servers allow few; a list with more
// is never covered.
type keys struct {
	fields [8]struct{ name, value []byte }
	n      int
}

// parseKeys reads an object of scalars.
func parseKeys(text []byte) (keys, bool) {
	k, r := keys{}, reader{data: text}
	for more := r.open(); more; more = r.next() {
		name, ok := r.key()
		if !ok || k.n == len(k.fields) {
			return k, false
		}
		r.peek()
		start := r.pos
		if !r.scalar() {
			return k, false
		}
		k.fields[k.n].name, k.fields[k.n].value = name, r.data[start:r.pos]
		k.n++
	}
	return k, r.end()
}

// scalar skips a scalar.
func (r *reader) scalar() bool {
	switch r.peek() {
	case '"':
		return r.text()
	case '{', '[', 0:
		return false
	}
	for ; r.pos < len(r.data); r.pos++ {
		switch r.data[r.pos] {
		case ',', '}', ' ', '\t', '\r', '\n':
			return true
		}
	}
	return true
}

// A match is whether an item has the keys of a member of an entry.
type match int

const (
	matchNone match = iota
	matchSome       // the other keys are left to their defaults
	matchAll
)

func (k *keys) match(item map[string]any) match {
	m := matchAll
	for _, f := range k.fields[:k.n] {
		v, ok := item[string(f.name)]
		switch {
		case !ok:
			m = matchSome
		case !equals(f.value, v):
			return matchNone
		}
	}
	return m
}

// equals reports whether a JSON text is that of a scalar.
func equals(text []byte, v any) bool {
	switch v := v.(type) {
	case string:
		if len(text) < 2 || text[0] != '"' {
			return false
		}
		inner := text[1 : len(text)-1]
		if bytes.IndexByte(inner, '\\') < 0 {
			return string(inner) == v
		}
		s, ok := unquote(inner)
		return ok && string(s) == v
	case bool:
		return string(text) == strconv.FormatBool(v)
	case nil:
		return string(text) == "null"
	}
	if i, ok := integer(v); ok {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return n == i
		}
		f, err := strconv.ParseFloat(string(text), 64)
		return err == nil && f == float64(i)
	}
	f, ok := v.(float64)
	if !ok {
		return false
	}
	n, err := strconv.ParseFloat(string(text), 64)
	return err == nil && n == f
}
