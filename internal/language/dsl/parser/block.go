// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import (
	"fmt"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// A blockForm says how a block is read.
type blockForm struct {
	what string    // names the block in messages
	head ast.Range // what is before the opening brace
	// indent is the indentation of the line that the head begins, -1 if it begins none.
	indent int
	// starts reports whether what follows can be the content of the block: then the parser
	// continues as if a missing opening brace were there.
	starts func() bool
	// leaves reports whether what follows belongs outside, so that the closing brace is missing.
	leaves func() bool
	item   func(ast.Lead) ast.Item
}

// items reads the items of a block, or of the file, with the comments between them. It stops before
// a closing brace, at the end of the file, and where leaves reports that what follows belongs
// further out.
func (p *parser) items(leaves func() bool, one func(ast.Lead) ast.Item) []ast.Item {
	l := itemList{parser: p}
	for {
		t := p.tok()
		switch {
		case t.kind == tokenNewline:
			p.next()
			l.newline()
		case t.kind == tokenComment:
			l.addComment(*p.comment())
		case p.isStray(t):
			l.note()
			p.stray(t)
		case t.kind == tokenEOF, t.kind == tokenRightBrace, leaves():
			l.note()
			return l.nodes
		default:
			l.node(one)
		}
	}
}

// An itemList reads the content of a block.
type itemList struct {
	*parser
	nodes    []ast.Item
	lead     ast.Lead // of the next item
	newlines int      // since the last item or comment
}

func (l *itemList) newline() {
	l.newlines++
	if l.newlines == 2 {
		l.note()
	}
}

// note turns a comment that no item follows into an item of its own.
func (l *itemList) note() {
	if len(l.lead.Doc) > 0 {
		l.nodes = append(l.nodes, &ast.Note{Lead: l.lead})
		l.lead = ast.Lead{}
	}
}

func (l *itemList) addComment(c ast.Comment) {
	l.begin()
	l.lead.Doc = append(l.lead.Doc, c)
}

// begin records, at the first token of an item or of its comment, whether an empty line comes
// before it.
func (l *itemList) begin() {
	if len(l.lead.Doc) == 0 {
		l.lead.Blank = l.newlines >= 2 && len(l.nodes) > 0
	}
	l.newlines = 0
}

func (l *itemList) node(one func(ast.Lead) ast.Item) {
	l.begin()
	before := l.pos
	if node := one(l.lead); node != nil {
		l.nodes = append(l.nodes, node)
	}
	l.lead = ast.Lead{}
	if l.pos == before {
		l.next() // nothing may stop the parser
	}
}

// isStray reports whether the closing brace, going by its indentation, is in the block that it
// would close.
func (p *parser) isStray(t token) bool {
	return t.kind == tokenRightBrace && p.byIndent && len(p.open) > 0 && t.indent > p.open[len(p.open)-1].indent
}

func (p *parser) stray(t token) {
	p.unbalanced = true
	p.report(diag.StrayBrace, t, `"}" closes nothing`, "remove it, or add the { that is missing above")
	p.next()
}

// block reads `{ ... }`.
func (p *parser) block(b *ast.Block, form blockForm) {
	if !p.leftBrace(b, form) {
		return
	}
	b.Start = p.last().End
	if p.last().kind == tokenLeftBrace {
		b.Start = p.last().Start
	}
	if b.Open == nil {
		b.Open = p.comment()
	}
	if form.indent < 0 && len(p.open) > 0 {
		form.indent = p.open[len(p.open)-1].indent
	}
	form.indent = max(form.indent, 0)
	p.open = append(p.open, form)
	b.Items = p.items(form.leaves, form.item)
	p.open = p.open[:len(p.open)-1]
	t := p.tok()
	if t.kind == tokenRightBrace && !p.belongsOutside(t, form) {
		p.next()
		b.End = t.End
		b.Close = p.endOfLine(`after "}"`, ownLine)
		return
	}
	p.unbalanced = true
	b.End = t.Start
	hint := "add a } before the end of the file"
	if start, _ := p.file.Position(t); t.kind != tokenEOF {
		hint = fmt.Sprintf("add a } before line %d", start.Line)
	}
	p.report(diag.UnclosedBlock, form.head, fmt.Sprintf("block of %s is never closed", form.what), hint)
}

// belongsOutside reports whether the closing brace, going by its indentation, closes a block around
// the given one.
func (p *parser) belongsOutside(brace token, self blockForm) bool {
	if !p.byIndent || brace.indent < 0 || brace.indent >= self.indent {
		return false
	}
	for _, outer := range p.open {
		if outer.indent == brace.indent {
			return true
		}
	}
	return false
}

// leftBrace reads the opening brace and reports whether there is a block.
func (p *parser) leftBrace(b *ast.Block, form blockForm) bool {
	if p.got(tokenLeftBrace) {
		return true
	}
	if t := p.tok(); t.kind != tokenNewline && t.kind != tokenComment && t.kind != tokenEOF && t.kind != tokenRightBrace {
		p.report(diag.Unexpected, t, fmt.Sprintf(`expected "{" after %s, found %s`, form.what, t.describe()),
			fmt.Sprintf(`remove what is between %s and "{"`, form.what))
		for t := p.tok().kind; t != tokenNewline && t != tokenEOF && t != tokenLeftBrace && t != tokenRightBrace; t = p.tok().kind {
			p.next()
		}
		if p.got(tokenLeftBrace) {
			return true
		}
	} else {
		p.report(diag.MissingBrace, p.here(), fmt.Sprintf(`expected "{" after %s`, form.what), "add a { at the end of the line")
	}
	// Perhaps it is on the next line, or only the brace is missing.
	save := p.pos
	open := p.comment()
	for p.tok().kind == tokenNewline || p.tok().kind == tokenComment {
		p.next()
	}
	if p.got(tokenLeftBrace) {
		b.Open = open
		return true
	}
	body := p.tok().kind == tokenWord && form.starts()
	p.pos = save
	if p.tok().kind == tokenComment {
		p.next()
	}
	return body
}
