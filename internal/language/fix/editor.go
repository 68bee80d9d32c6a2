// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/token"
	"slices"
)

// An editor changes the text of a file: what its edits do not touch stays as it is.
type editor struct {
	fset   *token.FileSet
	source *source
	edits  []edit
	left   []Remark
}

// An edit replaces a range of a file.
type edit struct {
	from, to token.Pos
	text     string
}

func (e *editor) replace(from, to token.Pos, text string) {
	e.edits = append(e.edits, edit{from, to, text})
}

func (e *editor) insert(at token.Pos, text string) { e.replace(at, at, text) }

func (e *editor) leave(at ast.Node, name, instead string) {
	e.left = append(e.left, Remark{e.source.name, e.fset.Position(at.Pos()).Line, name, instead})
}

func (e *editor) text(n ast.Node) string {
	return string(e.source.text[e.offset(n.Pos()):e.offset(n.End())])
}

func (e *editor) offset(p token.Pos) int { return e.fset.Position(p).Offset }

func (e *editor) hasComment(from, to token.Pos) bool {
	for _, group := range e.source.tree.Comments {
		if from <= group.Pos() && group.End() <= to {
			return true
		}
	}
	return false
}

// apply returns the text after the edits, which do not overlap. Of those that begin at the same
// place, insertions come first.
func (e *editor) apply() []byte {
	slices.SortStableFunc(e.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(min(a.to-a.from, 1), min(b.to-b.from, 1)))
	})
	var b bytes.Buffer
	at := 0
	for _, edit := range e.edits {
		b.Write(e.source.text[at:e.offset(edit.from)])
		b.WriteString(edit.text)
		at = e.offset(edit.to)
	}
	b.Write(e.source.text[at:])
	return b.Bytes()
}
