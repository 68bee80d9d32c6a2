// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import (
	"bytes"
	"fmt"

	"github.com/ctrlkit/ctrlkit/internal/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/dsl/diag"
)

// Parse returns the tree of the document and everything that is wrong with its form, sorted by
// position. The name is what positions give as their file. The tree is never nil; where the text
// makes no sense, the tree has less in it.
func Parse(name string, src []byte) (*ast.File, diag.List) {
	file := ast.NewFile(name, src)
	if d, ok := foreignText(file, src); ok {
		return file, diag.List{d}
	}
	tokens, scanned := scan(file, string(src))
	p := &parser{file: file, tokens: tokens}
	p.parseFile()
	if p.unbalanced {
		// The braces do not match. Read again, and let the indentation tell which one is missing.
		p = &parser{file: file, tokens: tokens, byIndent: true}
		file.Items = nil
		p.parseFile()
	}
	return file, append(scanned, p.list...).Sort()
}

// foreignText recognizes texts of which every line would be wrong for one reason, and says that
// reason once.
func foreignText(file *ast.File, src []byte) (diag.Diagnostic, bool) {
	report := func(code diag.Code, start, end int, message, hint string) (diag.Diagnostic, bool) {
		return diag.Diagnostic{Code: code, Start: file.Position(start), End: file.Position(end), Message: message, Hint: hint}, true
	}
	if isUTF16(src) {
		return report(diag.InvalidUTF8, 0, 2, "text is UTF-16, not UTF-8", "save the document as UTF-8")
	}
	if cr := bytes.IndexByte(src, '\r'); cr >= 0 && bytes.IndexByte(src, '\n') < 0 {
		return report(diag.IllegalCharacter, cr, cr+1, "lines end with carriage returns alone", "end them with newlines")
	}
	return diag.Diagnostic{}, false
}

// isUTF16 reports whether a text begins with a byte order mark of UTF-16, or with two ASCII
// characters in it.
func isUTF16(src []byte) bool {
	if len(src) < 4 {
		return false
	}
	a, b, c, d := src[0], src[1], src[2], src[3]
	return a == 0xFF && b == 0xFE || a == 0xFE && b == 0xFF ||
		a != 0 && b == 0 && c != 0 && d == 0 || a == 0 && b != 0 && c == 0 && d != 0
}

type parser struct {
	file   *ast.File
	tokens []token
	pos    int
	list   diag.List
	// open are the blocks around the current position, the innermost last.
	open []openBlock
	// unbalanced is set when a block is found to have no end.
	unbalanced bool
	// byIndent makes a closing brace at the beginning of a line close the block whose first line is
	// indented alike.
	byIndent bool
}

// An openBlock is a block whose end has not been seen.
type openBlock struct {
	what   string // for messages
	head   ast.Span
	indent int
}

func (p *parser) tok() token { return p.tokens[p.pos] }

// peek returns the kind of the token n places ahead.
func (p *parser) peek(n int) tokenKind {
	if p.pos+n >= len(p.tokens) {
		return tokenEOF
	}
	return p.tokens[p.pos+n].kind
}

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEOF {
		p.pos++
	}
	return t
}

func (p *parser) got(kind tokenKind) bool {
	if p.tok().kind != kind {
		return false
	}
	p.next()
	return true
}

func (p *parser) report(code diag.Code, span ast.Span, message, hint string) {
	p.list = append(p.list, diag.Diagnostic{
		Code: code, Start: p.file.Position(span.Start), End: p.file.Position(span.End), Message: message, Hint: hint,
	})
}

// here is the place of the current token. At the end of a line it is right behind what stands last
// on the line.
func (p *parser) here() ast.Span {
	t := p.tok()
	if (t.kind == tokenNewline || t.kind == tokenEOF || t.kind == tokenComment) && p.pos > 0 {
		if prev := p.tokens[p.pos-1]; prev.kind != tokenNewline && prev.kind != tokenComment {
			return ast.Span{Start: prev.End, End: prev.End}
		}
	}
	return t.Span
}

// skipLine steps to the end of the line, or to a closing brace that ends a block on the same line.
func (p *parser) skipLine() {
	depth := 0
	for {
		switch p.tok().kind {
		case tokenEOF, tokenNewline:
			return
		case tokenLeftBrace:
			depth++
		case tokenRightBrace:
			if depth == 0 {
				return
			}
			depth--
		}
		p.next()
	}
}

// word reads a word, or reports what stands there instead.
func (p *parser) word(want, hint string) (ast.Word, bool) {
	t := p.tok()
	if t.kind != tokenWord {
		p.report(diag.Unexpected, p.here(), fmt.Sprintf("expected %s, found %s", want, t.describe()), hint)
		return ast.Word{}, false
	}
	p.next()
	return ast.Word{Text: t.text, Span: t.Span}, true
}

// comment reads a comment on the same line, if one is there.
func (p *parser) comment() *ast.Comment {
	t := p.tok()
	if t.kind != tokenComment {
		return nil
	}
	p.next()
	return &ast.Comment{Text: t.text, Span: t.Span}
}

// endOfLine reads the comment at the end of a statement and reports anything else there.
func (p *parser) endOfLine(after, hint string) *ast.Comment {
	switch p.tok().kind {
	case tokenNewline, tokenEOF, tokenRightBrace, tokenComment:
		return p.comment()
	}
	start := p.tok()
	from := p.pos
	p.skipLine()
	end := p.tokens[p.pos-1]
	if end.kind == tokenComment && p.pos-2 >= from {
		end = p.tokens[p.pos-2]
	}
	p.report(diag.Unexpected, ast.Span{Start: start.Start, End: max(end.End, start.End)},
		fmt.Sprintf("expected the end of the line %s, found %s", after, start.describe()), hint)
	return nil
}

// items reads the nodes of a block, or of the file, with the comments between them. It stops before
// a closing brace, at the end of the file, and where leave says that what stands there belongs
// further out.
func (p *parser) items(leave func() bool, one func(ast.Lead) ast.Node) []ast.Node {
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
		case t.kind == tokenEOF, t.kind == tokenRightBrace, leave():
			l.note()
			return l.nodes
		default:
			l.node(one)
		}
	}
}

// An itemList is the content of a block while it is read.
type itemList struct {
	*parser
	nodes    []ast.Node
	lead     ast.Lead // of the node to come
	newlines int      // since the last node or comment
}

func (l *itemList) newline() {
	l.newlines++
	if l.newlines == 2 {
		l.note()
	}
}

// note makes a node of its own of a comment that no node follows.
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

// begin notes, at the first token of a node or of its comment, whether an empty line comes before
// it.
func (l *itemList) begin() {
	if len(l.lead.Doc) == 0 {
		l.lead.Blank = l.newlines >= 2 && len(l.nodes) > 0
	}
	l.newlines = 0
}

func (l *itemList) node(one func(ast.Lead) ast.Node) {
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

func (p *parser) parseFile() {
	for p.tok().kind != tokenEOF {
		p.file.Items = append(p.file.Items, p.items(func() bool { return false }, p.statement)...)
		if t := p.tok(); t.kind == tokenRightBrace {
			p.stray(t)
		}
	}
}

// isStray reports whether the closing brace, going by its indentation, is inside of the block that
// it would close.
func (p *parser) isStray(t token) bool {
	return t.kind == tokenRightBrace && p.byIndent && len(p.open) > 0 && t.indent > p.open[len(p.open)-1].indent
}

func (p *parser) stray(t token) {
	p.unbalanced = true
	p.report(diag.StrayBrace, t.Span, `"}" closes nothing`, "take it away, or look for a { that is missing above")
	p.next()
}

var statements = []string{"alias", "bind", "decl"}

func (p *parser) statement(lead ast.Lead) ast.Node {
	t := p.tok()
	if t.kind != tokenWord {
		p.report(diag.Unexpected, t.Span, fmt.Sprintf("expected bind, alias or decl, found %s", t.describe()), "")
		p.skipLine()
		return nil
	}
	switch t.text {
	case "bind":
		return orNil(p.bind(lead))
	case "alias":
		return orNil(p.alias(lead))
	case "decl":
		return orNil(p.decl(lead))
	}
	return p.unknownStatement(lead, t)
}

// orNil turns a nil pointer into a nil node.
func orNil[T any, P interface {
	*T
	ast.Node
}](node P) ast.Node {
	if node == nil {
		return nil
	}
	return node
}

// unknownStatement reports a misspelt keyword and reads on as if it had been spelt well, so that
// the names that the statement declares are not missed later.
func (p *parser) unknownStatement(lead ast.Lead, t token) ast.Node {
	near, _ := diag.Near(t.text, statements)
	hint := "a document has bind, alias and decl"
	switch {
	case p.peek(1) == tokenWord && p.tokens[p.pos+2].kind == tokenWord && p.tokens[p.pos+2].text == "for":
		near = "decl"
	case (t.text == "state" || t.text == "action") && p.peek(1) == tokenLeftBrace:
		hint = t.text + " stands inside of a decl"
	}
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.report(diag.UnknownStatement, t.Span, fmt.Sprintf("unknown statement %q", t.text), hint)
	switch near {
	case "bind":
		return orNil(p.bind(lead))
	case "alias":
		return orNil(p.alias(lead))
	case "decl":
		return orNil(p.decl(lead))
	}
	p.skipStatement()
	return nil
}

// skipStatement steps over a statement that is not understood, with its block if it has one.
func (p *parser) skipStatement() {
	depth := 0
	for {
		switch p.tok().kind {
		case tokenEOF:
			return
		case tokenNewline:
			if depth == 0 {
				return
			}
		case tokenLeftBrace:
			depth++
		case tokenRightBrace:
			depth--
			if depth < 0 {
				return
			}
		}
		if depth > 0 && p.startsTopLevel() {
			return
		}
		p.next()
	}
}

func (p *parser) bind(lead ast.Lead) *ast.Bind {
	start := p.next()
	n := &ast.Bind{Lead: lead}
	const form = "write bind GROUP/VERSION GO-PACKAGE, as in: bind batch/v1 k8s.io/api/batch/v1"
	var ok bool
	if n.GroupVersion, ok = p.word("a group and version", form); !ok {
		p.skipLine()
		return nil
	}
	if n.Package, ok = p.word("a Go package", form); !ok {
		p.skipLine()
		return nil
	}
	n.Span = ast.Span{Start: start.Start, End: n.Package.End}
	n.Trailing = p.endOfLine("after the package", "")
	return n
}

func (p *parser) alias(lead ast.Lead) *ast.Alias {
	start := p.next()
	n := &ast.Alias{Lead: lead}
	const form = "write alias NAME GROUP/VERSION/KIND, as in: alias Job batch/v1/Job"
	var ok bool
	if n.Name, ok = p.word("a name", form); !ok {
		p.skipLine()
		return nil
	}
	if n.Kind, ok = p.word("a kind", form); !ok {
		p.skipLine()
		return nil
	}
	n.Span = ast.Span{Start: start.Start, End: n.Kind.End}
	n.Trailing = p.endOfLine("after the kind", "")
	return n
}

func (p *parser) decl(lead ast.Lead) *ast.Decl {
	start := p.next()
	n := &ast.Decl{Lead: lead}
	const form = "write decl NAME for KIND {"
	var ok bool
	if n.Name, ok = p.word("the name of a controller manager", form); !ok {
		p.skipStatement()
		return nil
	}
	if t := p.tok(); t.kind == tokenWord && t.text == "for" {
		p.next()
	} else {
		p.report(diag.Unexpected, p.here(), fmt.Sprintf(`expected "for", found %s`, t.describe()), form)
		if t.kind == tokenWord && p.peek(1) == tokenWord {
			p.next() // a misspelt "for"
		}
	}
	if p.tok().kind == tokenWord {
		n.Kind, _ = p.word("", "")
	} else if p.tokens[p.pos-1].text == "for" {
		p.report(diag.Unexpected, p.here(), fmt.Sprintf("expected a kind, found %s", p.tok().describe()), form)
	}
	n.Span = ast.Span{Start: start.Start, End: p.tokens[p.pos-1].End}
	p.block(&n.Body, "decl "+n.Name.Text, n.Span, start.indent, p.startsSection, p.startsTopLevel, p.section)
	return n
}

// block reads `{ ... }`. startsBody says whether what follows can be the content of the block: then
// a missing opening brace is taken as read. leave says that what follows belongs outside, so that
// the closing brace is missing.
func (p *parser) block(b *ast.Block, what string, head ast.Span, indent int, startsBody, leave func() bool, one func(ast.Lead) ast.Node) {
	if !p.leftBrace(b, what, startsBody) {
		return
	}
	b.Start = p.tokens[p.pos-1].Start
	if b.Open == nil {
		b.Open = p.comment()
	}
	if indent < 0 && len(p.open) > 0 {
		indent = p.open[len(p.open)-1].indent
	}
	p.open = append(p.open, openBlock{what: what, head: head, indent: max(indent, 0)})
	b.Items = p.items(leave, one)
	self := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	t := p.tok()
	if t.kind == tokenRightBrace && !p.belongsOutside(t, self) {
		p.next()
		b.End = t.End
		b.Close = p.endOfLine(`after "}"`, "")
		return
	}
	p.unbalanced = true
	b.End = t.Start
	hint := "put a } before the end of the file"
	if t.kind != tokenEOF {
		hint = fmt.Sprintf("put a } before line %d", p.file.Position(t.Start).Line)
	}
	p.report(diag.UnclosedBlock, self.head, fmt.Sprintf("block of %s is never closed", self.what), hint)
}

// belongsOutside reports whether the closing brace, going by its indentation, closes a block around
// the given one.
func (p *parser) belongsOutside(brace token, self openBlock) bool {
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
func (p *parser) leftBrace(b *ast.Block, what string, startsBody func() bool) bool {
	if p.got(tokenLeftBrace) {
		return true
	}
	if t := p.tok(); t.kind != tokenNewline && t.kind != tokenComment && t.kind != tokenEOF && t.kind != tokenRightBrace {
		p.report(diag.Unexpected, t.Span, fmt.Sprintf(`expected "{" after %s, found %s`, what, t.describe()), "")
		for t := p.tok().kind; t != tokenNewline && t != tokenEOF && t != tokenLeftBrace && t != tokenRightBrace; t = p.tok().kind {
			p.next()
		}
		if p.got(tokenLeftBrace) {
			return true
		}
	} else {
		p.report(diag.MissingBrace, p.here(), fmt.Sprintf(`expected "{" after %s`, what), "put a { at the end of the line")
	}
	// Perhaps it stands on the next line, or only the brace was forgotten.
	save := p.pos
	open := p.comment()
	for p.tok().kind == tokenNewline || p.tok().kind == tokenComment {
		p.next()
	}
	if p.got(tokenLeftBrace) {
		b.Open = open
		return true
	}
	body := p.tok().kind == tokenWord && startsBody()
	p.pos = save
	if p.tok().kind == tokenComment {
		p.next()
	}
	return body
}
