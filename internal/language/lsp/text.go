// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"net/url"
	"path/filepath"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
)

// A text is the content of a file, with its lines.
type text struct {
	content string
	starts  []int // the offset of each line
	// utf8 makes characters bytes. Otherwise they are units of UTF-16, as the protocol has them by
	// default.
	utf8 bool
}

func newText(content string, utf8 bool) *text {
	t := &text{content: content, starts: []int{0}, utf8: utf8}
	for i := range len(content) {
		if content[i] == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	return t
}

// offset returns the offset of a position. What is outside of the text or of its line is moved to
// the nearest place inside.
func (t *text) offset(p position) int {
	switch {
	case p.Line < 0:
		return 0
	case p.Line >= len(t.starts):
		return len(t.content)
	}
	line := t.line(p.Line)
	if t.utf8 {
		return t.starts[p.Line] + min(max(p.Character, 0), len(line))
	}
	units := 0
	for i, r := range line {
		if units >= p.Character {
			return t.starts[p.Line] + i
		}
		units += unitsOf(r)
	}
	return t.starts[p.Line] + len(line)
}

// line returns a line without its end.
func (t *text) line(n int) string {
	end := len(t.content)
	if n+1 < len(t.starts) {
		end = t.starts[n+1] - 1
	}
	return strings.TrimSuffix(t.content[t.starts[n]:end], "\r")
}

// position returns the position of an offset.
func (t *text) position(offset int) position {
	offset = min(max(offset, 0), len(t.content))
	n := sort.SearchInts(t.starts, offset+1) - 1
	before := t.content[t.starts[n]:offset]
	if t.utf8 {
		return position{n, len(before)}
	}
	units := 0
	for _, r := range before {
		units += unitsOf(r)
	}
	return position{n, units}
}

func unitsOf(r rune) int {
	if r >= 0x10000 && r <= utf8.MaxRune {
		return 2
	}
	return 1
}

func (t *text) span(n ast.Node) span {
	r := n.Span()
	return span{t.position(r.Start), t.position(max(r.Start, r.End))}
}

// changed returns the text after a change.
func (t *text) changed(c contentChange) *text {
	if c.Range == nil {
		return newText(c.Text, t.utf8)
	}
	start, end := t.offset(c.Range.Start), t.offset(c.Range.End)
	return newText(t.content[:start]+c.Text+t.content[max(start, end):], t.utf8)
}

// replaced returns the edit that makes the text another one: it replaces the lines that differ.
func (t *text) replaced(with string) []textEdit {
	if with == t.content {
		return nil
	}
	before, after := strings.SplitAfter(t.content, "\n"), strings.SplitAfter(with, "\n")
	head := 0
	for head < len(before)-1 && head < len(after)-1 && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head-1 && tail < len(after)-head-1 && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	end := len(t.content)
	if tail > 0 {
		end = t.starts[len(before)-tail]
	}
	return []textEdit{{
		Range:   span{t.position(t.starts[head]), t.position(end)},
		NewText: strings.Join(after[head:len(after)-tail], ""),
	}}
}

// pathOf returns the path of a file: URI, or the URI itself if it is another one.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return uri
	}
	path := u.Path
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // a drive of Windows
		path = path[1:]
	}
	return filepath.Clean(filepath.FromSlash(path))
}

// uriOf returns the URI of a file.
func uriOf(path string) string {
	if strings.Contains(path, "://") || strings.HasPrefix(path, "untitled:") {
		return path
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
