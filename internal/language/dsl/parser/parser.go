// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import (
	"bytes"
	"fmt"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// Parse returns the syntax tree of the document and everything that is wrong with its form, sorted
// by position. Positions have name as their file. The tree is never nil; it lacks the parts of the
// text that Parse does not understand.
func Parse(name string, src []byte) (*ast.File, diag.List) {
	file := ast.NewFile(name, src)
	if d, ok := foreignText(file, src); ok {
		return file, diag.List{d}
	}
	tokens, scanned := scan(file, string(src))
	p := &parser{file: file, cursor: cursor{tokens: tokens}}
	p.parseFile()
	if p.unbalanced {
		// The braces do not match. Read again, and find the missing one by the indentation.
		p = &parser{file: file, cursor: cursor{tokens: tokens}, byIndent: true}
		file.Items = nil
		p.parseFile()
	}
	return file, append(scanned, p.list...).Sort()
}

// foreignText returns a single diagnostic for a text in which every line would be wrong for the
// same reason.
func foreignText(file *ast.File, src []byte) (diag.Diagnostic, bool) {
	report := func(code diag.Code, start, end int, message, hint string) (diag.Diagnostic, bool) {
		from, to := file.Position(ast.Range{Start: start, End: end})
		return diag.Diagnostic{Code: code, Start: from, End: to, Message: message, Hint: hint}, true
	}
	if isUTF16(src) {
		return report(diag.InvalidUTF8, 0, 2, "text is UTF-16, not UTF-8", "save the document as UTF-8")
	}
	if cr := bytes.IndexByte(src, '\r'); cr >= 0 && bytes.IndexByte(src, '\n') < 0 {
		return report(diag.IllegalCharacter, cr, cr+1, "lines end with a carriage return only", "end them with newlines")
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
	cursor
	file *ast.File
	list diag.List
	// open are the blocks around the current position, the innermost last.
	open []blockForm
	// unbalanced is set when a block is found to have no end.
	unbalanced bool
	// byIndent makes a closing brace at the beginning of a line close the block whose first line is
	// indented alike.
	byIndent bool
}

// report adds a diagnostic that underlines at: a node, a token or a range.
func (p *parser) report(code diag.Code, at ast.Node, message, hint string) {
	start, end := p.file.Position(at)
	p.list = append(p.list, diag.Diagnostic{Code: code, Start: start, End: end, Message: message, Hint: hint})
}

// word reads a word, or reports what is there instead.
func (p *parser) word(want, hint string) (ast.Word, bool) {
	t := p.tok()
	if t.kind != tokenWord {
		p.report(diag.Unexpected, p.here(), fmt.Sprintf("expected %s, found %s", want, t.describe()), hint)
		return ast.Word{}, false
	}
	p.next()
	return ast.Word{Text: t.text, Range: t.Range}, true
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
	p.report(diag.Unexpected, ast.Range{Start: start.Start, End: max(end.End, start.End)},
		fmt.Sprintf("expected the end of the line %s, found %s", after, start.describe()), hint)
	return nil
}

func (p *parser) parseFile() {
	for p.tok().kind != tokenEOF {
		p.file.Items = append(p.file.Items, p.items(func() bool { return false }, p.statement)...)
		if t := p.tok(); t.kind == tokenRightBrace {
			p.stray(t)
		}
	}
}

// ownLine is the hint for text after a statement or a block.
const ownLine = "put it on a line of its own, or remove it"

var statements = []string{"alias", "bind", "decl"}

func (p *parser) statement(lead ast.Lead) ast.Item {
	t := p.tok()
	if t.kind != tokenWord {
		p.report(diag.Unexpected, t, fmt.Sprintf("expected bind, alias or decl, found %s", t.describe()), "a document has bind, alias and decl")
		p.skipLine()
		return nil
	}
	switch t.text {
	case "bind":
		return p.bind(lead)
	case "alias":
		return p.alias(lead)
	case "decl":
		return p.decl(lead)
	}
	return p.unknownStatement(lead, t)
}

// unknownStatement reports a misspelled keyword and reads the statement as if the keyword were
// right, so that the names that it declares are known later.
func (p *parser) unknownStatement(lead ast.Lead, t token) ast.Item {
	near, _ := printable.Near(t.text, statements)
	hint := "a document has bind, alias and decl"
	switch {
	case p.peek(1) == tokenWord && p.tokens[p.pos+2].kind == tokenWord && p.tokens[p.pos+2].text == "for":
		near = "decl"
	case (t.text == "state" || t.text == "action") && p.peek(1) == tokenLeftBrace:
		hint = t.text + " belongs in a decl"
	}
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.report(diag.UnknownStatement, t, fmt.Sprintf("unknown statement %q", t.text), hint)
	switch near {
	case "bind":
		return p.bind(lead)
	case "alias":
		return p.alias(lead)
	case "decl":
		return p.decl(lead)
	}
	p.skipStatement()
	return nil
}

func (p *parser) bind(lead ast.Lead) ast.Item {
	n := &ast.Bind{Lead: lead}
	start, ok := p.words(&n.GroupVersion, "a group and version", &n.Package, "a Go package",
		"write bind GROUP/VERSION GO-PACKAGE, as in: bind batch/v1 k8s.io/api/batch/v1")
	if !ok {
		return nil
	}
	n.Range = ast.Range{Start: start, End: n.Package.End}
	n.Trailing = p.endOfLine("after the package", ownLine)
	return n
}

func (p *parser) alias(lead ast.Lead) ast.Item {
	n := &ast.Alias{Lead: lead}
	start, ok := p.words(&n.Name, "a name", &n.Kind, "a kind",
		"write alias NAME GROUP/VERSION/KIND, as in: alias Job batch/v1/Job")
	if !ok {
		return nil
	}
	n.Range = ast.Range{Start: start, End: n.Kind.End}
	n.Trailing = p.endOfLine("after the kind", ownLine)
	return n
}

// words reads the keyword and the two words of a statement on one line. It returns where the
// keyword begins, and reports whether the words are there: if not, it skips the line.
func (p *parser) words(first *ast.Word, what string, second *ast.Word, whatNext, form string) (start int, ok bool) {
	start = p.next().Start
	if *first, ok = p.word(what, form); ok {
		*second, ok = p.word(whatNext, form)
	}
	if !ok {
		p.skipLine()
	}
	return start, ok
}

func (p *parser) decl(lead ast.Lead) ast.Item {
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
			p.next() // a misspelled "for"
		}
	}
	if p.tok().kind == tokenWord {
		n.Kind, _ = p.word("", "")
	} else if p.tokens[p.pos-1].text == "for" {
		p.report(diag.Unexpected, p.here(), fmt.Sprintf("expected a kind, found %s", p.tok().describe()), form)
	}
	n.Range = ast.Range{Start: start.Start, End: p.last().End}
	p.block(&n.Body, blockForm{
		what: "decl " + n.Name.Text, head: n.Range, indent: start.indent,
		starts: p.startsSection, leaves: p.startsTopLevel, item: p.section,
	})
	n.End = max(n.End, n.Body.End)
	return n
}
