// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package ast is the syntax tree of one document, comments included.
//
// The parser builds the tree; the formatter and the checker read it. Every [Node] knows its span,
// as offsets into the source, and the tree keeps everything that the author wrote except the
// layout. [Walk] and [All] visit the nodes in the order of the source:
//
//	file, list := parser.Parse("cronjob.ctrlkit", src)
//	for decl := range ast.All[*ast.Decl](file) {
//		start, _ := file.Position(decl.Name)
//		fmt.Println(start, decl.Name.Text)
//	}
package ast

import (
	"go/token"
	"sort"
	"strings"
)

// A Node is a piece of the tree. These types are nodes: *[File], *[Bind], *[Alias], *[Decl],
// *[Section], *[Block], *[State], *[Selector], *[Value], *[Part], *[Ref], *[Action], *[Arg],
// *[Word], *[Comment] and *[Note].
type Node interface {
	// Span returns the range of the node in the source.
	//
	//   - The span contains the spans of all nodes below it, except for the comments before the
	//     node (its [Lead]) and at the end of its last line. The span of the [File] contains
	//     those, too.
	//   - The spans of siblings do not overlap and are in the order of the source.
	//   - A part that is missing, because the document has a mistake, has an empty span and is not
	//     visited by [Walk].
	Span() Range
}

// A Range is a piece of the source, in bytes. Start is the offset of its first byte, End the offset
// after its last one.
type Range struct{ Start, End int }

// Span returns the range itself: what embeds a Range is a [Node].
func (r Range) Span() Range { return r }

// Contains reports whether other is within the range.
func (r Range) Contains(other Range) bool { return r.Start <= other.Start && other.End <= r.End }

// An Item is a node on lines of its own: *[Bind], *[Alias], *[Decl], *[Section],
// *[State], *[Selector], *[Action] or *[Note].
type Item interface {
	Node
	// Above returns what is before the item.
	Above() *Lead
}

// A Lead is what is before an item or an argument.
type Lead struct {
	// Blank is true when an empty line separates the item, with its comment, from the one before
	// it. It is never true for the first item of a block.
	Blank bool
	// Doc is the comment right above the item.
	Doc []Comment
}

// Above returns the lead itself: a node that embeds a Lead is an [Item].
func (l *Lead) Above() *Lead { return l }

// A Word is a name, path or key. Its text differs from the source if the source has a mistake: it
// lacks the characters that are not allowed, and a misspelled keyword is corrected.
type Word struct {
	Text string
	Range
}

// A Comment is one comment line, with its slashes and without white space at its end.
type Comment struct {
	Text string
	Range
}

// A File is one document.
type File struct {
	Name string
	Range
	Items []Item // *Bind, *Alias, *Decl, *Note
	// lines holds the offset of the beginning of each line.
	lines []int
}

// NewFile returns an empty tree for a source with the given name.
func NewFile(name string, src []byte) *File {
	lines := []int{0}
	for i, c := range src {
		if c == '\n' {
			lines = append(lines, i+1)
		}
	}
	return &File{Name: name, Range: Range{End: len(src)}, lines: lines}
}

// Position returns the positions of the first byte of n and of the one after its last. A [Range]
// is a node too. Lines and columns count from 1, columns in bytes.
func (f *File) Position(n Node) (start, end token.Position) {
	span := n.Span()
	return f.position(span.Start), f.position(span.End)
}

func (f *File) position(offset int) token.Position {
	i := sort.SearchInts(f.lines, offset+1) - 1
	return token.Position{Filename: f.Name, Offset: offset, Line: i + 1, Column: offset - f.lines[i] + 1}
}

// A Note is a comment that belongs to no other item: an empty line or the end of the block follows
// it. The comment is in its lead.
type Note struct{ Lead }

// Span returns the span of the comment.
func (n *Note) Span() Range {
	if len(n.Doc) == 0 {
		return Range{}
	}
	return Range{Start: n.Doc[0].Start, End: n.Doc[len(n.Doc)-1].End}
}

// A Bind is `bind GROUP/VERSION PACKAGE`.
type Bind struct {
	Lead
	Range
	GroupVersion, Package Word
	Trailing              *Comment
}

// An Alias is `alias NAME GROUP/VERSION/KIND`.
type Alias struct {
	Lead
	Range
	Name, Kind Word
	Trailing   *Comment
}

// A Decl is `decl NAME for KIND { ... }`.
type Decl struct {
	Lead
	Range
	Name, Kind Word
	Body       Block // of *Section and *Note
}

// A Block is a pair of braces with what is between them.
type Block struct {
	Range
	Open  *Comment // after the opening brace
	Items []Item
	Close *Comment // after the closing brace
}

// A Section is `state { ... }` or `action { ... }`.
type Section struct {
	Lead
	Range
	Keyword Word
	Body    Block // of *State and *Note, or of *Action and *Note
}

// A State is `NAME KIND { ... }` or `NAME []KIND { ... }`.
type State struct {
	Lead
	Range
	Name Word
	List bool
	Kind Word
	Body Block // of *Selector and *Note
}

// A Selector is one line in the body of a state: a key, mostly with a value.
type Selector struct {
	Lead
	Range
	Key Word
	// HasValue is true when an equals sign is there, even if nothing follows it.
	HasValue bool
	Value    Value
	// Op is in or notin before a set of values in parentheses.
	Op       Word
	Set      []*Value
	Trailing *Comment
}

// A Value is what follows an equals sign.
type Value struct {
	Range
	// Quoted is true when the value is between double quotes.
	Quoted bool
	// Bad is true when the form of the value is wrong: then it has no parts.
	Bad   bool
	Parts []Part
}

// A Part is text or, when Ref is not nil, a reference.
type Part struct {
	Range
	Text string // without quotes and escapes
	Ref  *Ref
}

// A Ref is `${A.B.C}`, `${A.B.C?}`, or `${A.B.C?DEFAULT}`.
type Ref struct {
	Range
	Path []Word
	// Optional is true when a question mark follows the path.
	Optional bool
	// Default is what follows the question mark, without text if nothing does.
	Default Word
}

// String returns the reference without spaces.
func (r *Ref) String() string { return "${" + r.Source() + "}" }

// Source returns what is between the braces, without spaces.
func (r *Ref) Source() string {
	if r.Optional {
		return r.Name() + "?" + r.Default.Text
	}
	return r.Name()
}

// Step returns the name of a field in a reference, and what is in the brackets after it: nothing
// for the elements of a list, and a key for what a map has for it.
func (w Word) Step() (name, key string, brackets bool) {
	name, key, brackets = strings.Cut(strings.TrimSuffix(w.Text, "]"), "[")
	return name, key, brackets
}

// Name returns the names of the reference with dots between them. A name that stands for the elements
// of a list ends in [].
func (r *Ref) Name() string {
	names := make([]string, len(r.Path))
	for i, w := range r.Path {
		names[i] = w.Text
	}
	return strings.Join(names, ".")
}

// An Action is `NAME(STATE, ...)`.
type Action struct {
	Lead
	Range
	Name     Word
	Open     *Comment // after the opening parenthesis
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

// Span returns the span of the name.
func (a *Arg) Span() Range { return a.Name.Span() }
