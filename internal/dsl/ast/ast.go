// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package ast is the tree of one document, comments included.
//
// The tree is what the parser makes and what the formatter and the checker read. It carries offsets into the source
// ([Span]) and everything that a person wrote except the layout:
//
//	file, list := parser.Parse("cronjob.ctrlkit", src)
//	for _, item := range file.Items {
//		if decl, ok := item.(*ast.Decl); ok {
//			fmt.Println(file.Position(decl.Name.Start), decl.Name.Text)
//		}
//	}
package ast

import (
	"go/token"
	"sort"
	"strings"
)

// A Span is a piece of the source: offsets in bytes, End behind the last one.
type Span struct{ Start, End int }

// A Word is a name, path or key as it is written. Its text is shorter than its span if characters in it had to be left out
// because they may stand nowhere.
type Word struct {
	Text string
	Span
}

// A Comment is one comment line, with its slashes and without white space at its end.
type Comment struct {
	Text string
	Span
}

// A File is one document.
type File struct {
	Name  string
	Items []Node // *Bind, *Alias, *Decl, *Note
	// lines holds the offset of the beginning of each line.
	lines []int
}

// NewFile returns an empty tree for a source of the name.
func NewFile(name string, src []byte) *File {
	lines := []int{0}
	for i, c := range src {
		if c == '\n' {
			lines = append(lines, i+1)
		}
	}
	return &File{Name: name, lines: lines}
}

// Position returns the line and the column, both counted from 1, the column in bytes, of an offset.
func (f *File) Position(offset int) token.Position {
	i := sort.SearchInts(f.lines, offset+1) - 1
	return token.Position{Filename: f.Name, Offset: offset, Line: i + 1, Column: offset - f.lines[i] + 1}
}

// A Node is anything that stands on lines of its own.
type Node interface {
	// Above returns what stands before the node.
	Above() *Lead
}

// A Lead is what stands before a node.
type Lead struct {
	// Blank is true when an empty line separates the node, with its comment, from the one before it. It is never true for
	// the first node of a block.
	Blank bool
	// Doc is the comment right above the node.
	Doc []Comment
}

// Above returns the lead itself: it makes everything that embeds a Lead a [Node].
func (l *Lead) Above() *Lead { return l }

// A Note is a comment that belongs to no node: the comment is in its lead, and an empty line or the end of the block
// follows.
type Note struct{ Lead }

// A Bind is `bind GROUP/VERSION PACKAGE`.
type Bind struct {
	Lead
	Span
	GroupVersion, Package Word
	Trailing              *Comment
}

// An Alias is `alias NAME GROUP/VERSION/KIND`.
type Alias struct {
	Lead
	Span
	Name, Kind Word
	Trailing   *Comment
}

// A Decl is `decl NAME for KIND { ... }`.
type Decl struct {
	Lead
	Span
	Name, Kind Word
	Body       Block // of *Section and *Note
}

// A Block is what stands between braces.
type Block struct {
	Span
	Open  *Comment // behind the opening brace
	Items []Node
	Close *Comment // behind the closing brace
}

// A Section is `state { ... }` or `action { ... }`.
type Section struct {
	Lead
	Keyword Word
	Body    Block // of *State and *Note, or of *Action and *Note
}

// A State is `NAME KIND { ... }` or `NAME []KIND { ... }`.
type State struct {
	Lead
	Span
	Name Word
	List bool
	Kind Word
	Body Block // of *Selector and *Note
}

// A Selector is one line in the body of a state: a key, mostly with a value.
type Selector struct {
	Lead
	Span
	Key Word
	// HasValue is true when an equals sign is there, also when nothing follows it.
	HasValue bool
	Value    Value
	Trailing *Comment
}

// A Value is what stands behind an equals sign.
type Value struct {
	Span
	// Quoted is true when the value stands between double quotes.
	Quoted bool
	// Bad is true when the form of the value is wrong: then it has no parts.
	Bad   bool
	Parts []Part
}

// A Part is text or, when Ref is not nil, a reference.
type Part struct {
	Span
	Text string // without quotes and escapes
	Ref  *Ref
}

// A Ref is `${A.B.C}`.
type Ref struct {
	Span
	Path []Word
}

// An Action is `NAME(STATE, ...)`.
type Action struct {
	Lead
	Span
	Name     Word
	Open     *Comment // behind the opening parenthesis
	Args     []*Arg
	Tail     []Comment // before the closing parenthesis
	Trailing *Comment
}

// An Arg is the name of a state in an action.
type Arg struct {
	Lead
	Name     Word
	Trailing *Comment
}

// String returns the reference as it is written, without spaces.
func (r *Ref) String() string { return "${" + r.Name() + "}" }

// Name returns the names of the reference with dots between them.
func (r *Ref) Name() string {
	names := make([]string, len(r.Path))
	for i, w := range r.Path {
		names[i] = w.Text
	}
	return strings.Join(names, ".")
}
