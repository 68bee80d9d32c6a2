// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package format writes documents in their canonical layout.
//
//   - Blocks are indented by four spaces.
//   - Selectors have no space around the equals sign.
//   - Blocks and comments that an empty line separates stay separated by one empty line.
//     Declarations are always separated.
//   - No comment is lost, and no word is changed.
//
// For example:
//
//	out, list := format.Source("cronjob.ctrlkit", src)
//	if list.HasErrors() {
//		// out is nil: a document with mistakes in its form is not formatted
//	}
//
// Formatting a formatted document changes nothing, and the tree of the output equals the tree of
// the input.
package format

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
)

const (
	indentation = "    "
	// maxAction is the width up to which an action with its states stays on one line.
	maxAction = 100
)

// Source formats a document. The list is what is wrong with the form of the document; if it has an
// error, the text is nil. Positions have name as their file.
func Source(name string, src []byte) ([]byte, diag.List) {
	file, list := parser.Parse(name, src)
	if list.HasErrors() {
		return nil, list
	}
	return Tree(file), list
}

// Tree formats a document that the parser found no error in.
func Tree(file *ast.File) []byte {
	var p printer
	for i, item := range file.Items {
		if i > 0 && separate(file.Items[i-1], item) {
			p.WriteByte('\n')
		}
		p.node(item)
	}
	return p.Bytes()
}

// separate reports whether an empty line comes between two nodes of one block.
func separate(prev, next ast.Item) bool {
	if next.Above().Blank {
		return true
	}
	switch prev.(type) {
	case *ast.Note, *ast.Decl, *ast.Section:
		return true
	case *ast.Bind:
		_, same := next.(*ast.Bind)
		return !same
	case *ast.Alias:
		_, same := next.(*ast.Alias)
		return !same
	}
	return false
}

type printer struct {
	bytes.Buffer
	depth int
}

func (p *printer) line(format string, args ...any) {
	p.WriteString(strings.Repeat(indentation, p.depth))
	fmt.Fprintf(p, format, args...)
}

// end writes the comment at the end of a line, if there is one, and the newline.
func (p *printer) end(c *ast.Comment) {
	if c != nil {
		p.WriteByte(' ')
		p.WriteString(c.Text)
	}
	p.WriteByte('\n')
}

func (p *printer) comments(list []ast.Comment) {
	for _, c := range list {
		p.line("%s\n", c.Text)
	}
}

func (p *printer) node(n ast.Item) {
	p.comments(n.Above().Doc)
	switch n := n.(type) {
	case *ast.Bind:
		p.line("bind %s %s", n.GroupVersion.Text, n.Package.Text)
		p.end(n.Trailing)
	case *ast.Alias:
		p.line("alias %s %s", n.Name.Text, n.Kind.Text)
		p.end(n.Trailing)
	case *ast.Decl:
		p.line("decl %s for %s ", n.Name.Text, n.Kind.Text)
		p.block(n.Body)
	case *ast.Section:
		p.line("%s ", n.Keyword.Text)
		p.block(n.Body)
	case *ast.State:
		list := ""
		if n.List {
			list = "[]"
		}
		p.line("%s %s%s ", n.Name.Text, list, n.Kind.Text)
		p.block(n.Body)
	case *ast.Selector:
		p.line("%s", n.Key.Text)
		if n.HasValue {
			p.WriteByte('=')
			p.value(n.Value)
		}
		if len(n.Set) > 0 {
			p.set(n)
		}
		p.end(n.Trailing)
	case *ast.Action:
		p.action(n)
	}
}

func (p *printer) block(b ast.Block) {
	if len(b.Items) == 0 && b.Open == nil {
		p.WriteString("{}")
		p.end(b.Close)
		return
	}
	p.WriteByte('{')
	p.end(b.Open)
	p.depth++
	for i, item := range b.Items {
		if i > 0 && separate(b.Items[i-1], item) {
			p.WriteByte('\n')
		}
		p.node(item)
	}
	p.depth--
	p.line("}")
	p.end(b.Close)
}

func (p *printer) set(n *ast.Selector) {
	p.WriteString(" " + n.Op.Text + " (")
	for i, v := range n.Set {
		if i > 0 {
			p.WriteString(", ")
		}
		p.value(*v)
	}
	p.WriteByte(')')
}

func (p *printer) value(v ast.Value) {
	if v.Quoted {
		p.WriteByte('"')
		defer p.WriteByte('"')
	}
	for _, part := range v.Parts {
		switch {
		case part.Ref != nil:
			p.WriteString(part.Ref.String())
		case v.Quoted:
			p.escaped(part.Text)
		default:
			p.WriteString(part.Text)
		}
	}
}

func (p *printer) escaped(text string) {
	for _, r := range text {
		switch {
		case r == '"' || r == '\\' || r == '$':
			p.WriteByte('\\')
			p.WriteRune(r)
		case r == '\n':
			p.WriteString(`\n`)
		case r == '\t':
			p.WriteString(`\t`)
		case unicode.IsPrint(r):
			p.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(p, `\U%08x`, r)
		default:
			fmt.Fprintf(p, `\u%04x`, r)
		}
	}
}

// action writes an action on one line if it fits there and no comment is between its parentheses.
func (p *printer) action(n *ast.Action) {
	names := make([]string, len(n.Args))
	for i, arg := range n.Args {
		names[i] = arg.Name.Text
	}
	commented := false
	for c := range ast.All[*ast.Comment](n) {
		commented = commented || n.Span().Contains(c.Span())
	}
	line := n.Name.Text + "(" + strings.Join(names, ", ") + ")"
	if !commented && (len(n.Args) < 2 || p.depth*len(indentation)+len(line) <= maxAction) {
		p.line("%s", line)
		p.end(n.Trailing)
		return
	}
	p.line("%s(", n.Name.Text)
	p.end(n.Open)
	p.depth++
	for _, arg := range n.Args {
		p.comments(arg.Doc)
		p.line("%s,", arg.Name.Text)
		p.end(arg.Trailing)
	}
	p.comments(n.Tail)
	p.depth--
	p.line(")")
	p.end(n.Trailing)
}
