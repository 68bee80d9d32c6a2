// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import (
	"fmt"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/dsl/diag"
)

// startsTopLevel reports whether a statement begins here that cannot stand inside of a block.
func (p *parser) startsTopLevel() bool {
	t := p.tok()
	if t.kind != tokenWord || t.indent < 0 || p.peek(1) != tokenWord || p.peek(2) != tokenWord {
		return false
	}
	switch t.text {
	case "decl":
		return p.tokens[p.pos+2].text == "for"
	case "bind", "alias":
		return strings.Contains(p.tokens[p.pos+1].text+p.tokens[p.pos+2].text, "/")
	}
	return false
}

// startsSection reports whether a section begins here. A state may be called state: it has a kind before its brace.
func (p *parser) startsSection() bool {
	t := p.tok()
	return t.kind == tokenWord && (t.text == "state" || t.text == "action") && p.peek(1) == tokenLeftBrace
}

func (p *parser) leavesSection() bool { return p.startsTopLevel() || p.startsSection() }

// startsState reports whether this line is the head of a state, up to its opening brace.
func (p *parser) startsState() bool {
	if p.peek(0) != tokenWord {
		return false
	}
	if p.peek(1) == tokenLeftBracket && p.peek(2) == tokenRightBracket {
		return p.peek(3) == tokenWord
	}
	return p.peek(1) == tokenWord && p.peek(2) == tokenLeftBrace
}

func (p *parser) leavesState() bool { return p.leavesSection() || p.startsState() }

func (p *parser) startsSelector() bool {
	t := p.tok()
	return t.text == "owned" && p.peek(1) != tokenWord && p.peek(1) != tokenLeftBracket || p.peek(1) == tokenEquals
}

func (p *parser) startsAction() bool { return p.peek(1) == tokenLeftParen }

var sections = []string{"action", "state"}

// section reads `state { ... }` or `action { ... }`.
func (p *parser) section(lead ast.Lead) ast.Node {
	t := p.tok()
	if t.kind != tokenWord {
		p.report(diag.Unexpected, t.Span, fmt.Sprintf("expected state or action, found %s", t.describe()), "")
		p.skipStatement()
		return nil
	}
	keyword := t.text
	if keyword != "state" && keyword != "action" {
		near, _ := diag.Near(keyword, sections)
		if near == "" && p.peek(1) == tokenLeftBrace {
			near = p.guessSection()
		}
		if near == "" {
			return p.strayInDecl(t)
		}
		p.report(diag.UnknownStatement, t.Span, fmt.Sprintf("unknown block %q", keyword), fmt.Sprintf("did you mean %q?", near))
		keyword = near
	}
	p.next()
	n := &ast.Section{Lead: lead, Keyword: ast.Word{Text: keyword, Span: t.Span}}
	if keyword == "state" {
		p.block(&n.Body, "state", t.Span, t.indent, p.startsState, p.leavesSection, p.state)
	} else {
		p.block(&n.Body, "action", t.Span, t.indent, p.startsAction, p.leavesSection, p.action)
	}
	return n
}

// guessSection tells by the first line of a block with an unknown name what it holds.
func (p *parser) guessSection() string {
	save := p.pos
	defer func() { p.pos = save }()
	p.pos += 2
	for p.tok().kind == tokenNewline || p.tok().kind == tokenComment {
		p.next()
	}
	switch {
	case p.startsState():
		return "state"
	case p.peek(0) == tokenWord && p.startsAction():
		return "action"
	}
	return ""
}

// strayInDecl reports what stands in a decl but outside of its blocks.
func (p *parser) strayInDecl(t token) ast.Node {
	hint := "a decl has state { ... } and action { ... }"
	switch {
	case p.startsState():
		hint = "states stand in state { ... }"
	case p.startsAction():
		hint = "actions stand in action { ... }"
	}
	p.report(diag.UnknownStatement, t.Span, fmt.Sprintf("unexpected %q in a decl", t.text), hint)
	p.skipStatement()
	return nil
}

func (p *parser) state(lead ast.Lead) ast.Node {
	n := &ast.State{Lead: lead}
	start := p.tok()
	const form = "write NAME KIND { for one object or NAME []KIND { for a list"
	if start.kind == tokenWord && p.startsAction() {
		p.report(diag.Unexpected, start.Span, fmt.Sprintf("action %s stands in a state block", start.text), "actions stand in action { ... }")
		p.skipLine()
		return nil
	}
	var ok bool
	if n.Name, ok = p.word("the name of a state", form); !ok {
		p.skipStatement()
		return nil
	}
	if t := p.tok(); p.got(tokenLeftBracket) {
		n.List = true
		if !p.got(tokenRightBracket) {
			p.report(diag.Unexpected, p.here(), fmt.Sprintf(`expected "]", found %s`, p.tok().describe()), form)
		}
	} else if t.kind == tokenEquals {
		p.report(diag.Unexpected, start.Span, fmt.Sprintf("selector %s stands outside of a state", start.text), form)
		p.skipLine()
		return nil
	}
	if n.Kind, ok = p.word("a kind", form); !ok && p.tok().kind != tokenLeftBrace {
		p.skipStatement()
		return nil
	}
	n.Span = ast.Span{Start: start.Start, End: p.tokens[p.pos-1].End}
	p.block(&n.Body, "state "+n.Name.Text, n.Span, start.indent, p.startsSelector, p.leavesState, p.selector)
	return n
}

func (p *parser) selector(lead ast.Lead) ast.Node {
	t := p.tok()
	key, ok := p.word("a selector", "the selectors are name=, namespace=, labels/KEY=, fields/PATH= and owned")
	if !ok {
		p.skipStatement()
		return nil
	}
	n := &ast.Selector{Lead: lead, Key: key, Span: key.Span}
	if p.tok().kind == tokenLeftBracket && p.tok().Start == key.End {
		p.bracket(key)
		return nil
	}
	if p.tok().kind == tokenLeftBracket || p.tok().kind == tokenLeftBrace {
		p.report(diag.Unexpected, t.Span, fmt.Sprintf("expected a selector, found %q and a block", key.Text), "blocks do not stand inside of a state")
		p.skipStatement()
		return nil
	}
	hint := "each selector has a line of its own"
	if p.tok().kind == tokenEquals {
		n.HasValue = true
		n.End = p.next().End
		if v := p.tok(); v.kind == tokenValue {
			n.Value = *v.value
			n.End = v.End
			p.next()
			if p.tok().kind == tokenWord && p.peek(1) != tokenEquals && p.tok().text != "owned" && !n.Value.Quoted {
				hint = "a value with spaces needs quotes"
			}
		}
	}
	n.Trailing = p.endOfLine("after the selector", hint)
	return n
}

// bracket reports a key with an index in it.
func (p *parser) bracket(key ast.Word) {
	start := p.tok()
	for k := p.tok().kind; k != tokenNewline && k != tokenEOF && k != tokenRightBracket && k != tokenRightBrace; k = p.tok().kind {
		p.next()
	}
	end := start.End
	if p.tok().kind == tokenRightBracket {
		end = p.next().End
	}
	hint := "write labels/KEY=VALUE or fields/PATH=VALUE"
	if strings.HasPrefix(key.Text, "fields/") {
		hint = "fields inside of lists and maps cannot be selected"
	}
	p.report(diag.BadFieldPath, ast.Span{Start: start.Start, End: end}, fmt.Sprintf("index in the selector %s", key.Text), hint)
	p.skipLine()
}

func (p *parser) action(lead ast.Lead) ast.Node {
	const form = "write NAME() or NAME(STATE, ...)"
	n := &ast.Action{Lead: lead}
	start := p.tok()
	if p.startsState() {
		p.report(diag.Unexpected, start.Span, fmt.Sprintf("state %s stands in an action block", start.text), "states stand in state { ... }")
		p.skipStatement()
		return nil
	}
	var ok bool
	if n.Name, ok = p.word("the name of an action", form); !ok {
		p.skipStatement()
		return nil
	}
	n.Span = n.Name.Span
	if p.tok().kind != tokenLeftParen {
		p.report(diag.Unexpected, p.here(), fmt.Sprintf(`expected "(", found %s`, p.tok().describe()), form)
		p.skipStatement()
		return n
	}
	p.arguments(n)
	n.End = p.tokens[p.pos-1].End
	n.Trailing = p.endOfLine("after the action", "each action has a line of its own")
	return n
}

// arguments reads `(STATE, ...)`; it may go over several lines.
func (p *parser) arguments(n *ast.Action) {
	a := argumentList{parser: p, action: n, paren: p.next(), comma: true}
	n.Open = p.comment()
	a.closes = p.closes()
	a.line = p.pos
	for a.next() {
	}
}

// An argumentList is what is between the parentheses of an action while it is read.
type argumentList struct {
	*parser
	action *ast.Action
	paren  token
	doc    []ast.Comment // comments that wait for their argument
	last   *ast.Arg      // the argument that a comment on this line belongs to
	comma  bool          // whether an argument may follow
	closes bool          // whether the parenthesis is closed at all
	line   int           // the end of the last line with an argument
}

// next reads one token of the list and reports whether the list goes on.
func (a *argumentList) next() bool {
	if a.last != nil {
		a.line = a.pos
	}
	switch t := a.tok(); t.kind {
	case tokenNewline:
		a.parser.next()
		a.last = nil
	case tokenComment:
		a.addComment(*a.comment())
	case tokenWord:
		return a.argument(t)
	case tokenComma:
		if a.comma {
			a.report(diag.Unexpected, t.Span, "expected a state, found a comma", "")
		}
		a.parser.next()
		a.comma = true
	case tokenRightParen:
		a.parser.next()
		a.action.Tail = a.doc
		return false
	case tokenEOF, tokenLeftBrace, tokenRightBrace:
		a.unclosed()
		return false
	default:
		a.report(diag.Unexpected, t.Span, fmt.Sprintf("expected a state, found %s", t.describe()), "")
		a.parser.next()
		a.skipArgument()
	}
	return true
}

func (a *argumentList) addComment(c ast.Comment) {
	if a.last != nil && a.last.Trailing == nil {
		a.last.Trailing = &c
		return
	}
	a.doc = append(a.doc, c)
}

func (a *argumentList) argument(t token) bool {
	if a.argumentsBroken() || t.indent >= 0 && !a.comma && !a.closes {
		a.pos = a.line
		a.unclosed()
		return false
	}
	if !a.comma {
		a.report(diag.Unexpected, t.Span, fmt.Sprintf("expected a comma, found %s", t.describe()), "states are separated by commas")
	}
	a.parser.next()
	a.last = &ast.Arg{Lead: ast.Lead{Doc: a.doc}, Name: ast.Word{Text: t.text, Span: t.Span}}
	a.action.Args = append(a.action.Args, a.last)
	a.doc, a.comma = nil, false
	return true
}

func (a *argumentList) unclosed() {
	a.report(diag.UnclosedArguments, a.paren.Span, fmt.Sprintf(`"(" of action %s is never closed`, a.action.Name.Text),
		"put a ) behind the states")
}

// skipArgument steps over what is no state, up to the next comma.
func (p *parser) skipArgument() {
	for {
		switch p.tok().kind {
		case tokenEOF, tokenNewline, tokenComment, tokenComma, tokenLeftParen, tokenRightParen, tokenLeftBrace, tokenRightBrace:
			return
		}
		p.next()
	}
}

// closes reports whether a closing parenthesis comes before anything that cannot stand among arguments.
func (p *parser) closes() bool {
	for i := p.pos; ; i++ {
		switch p.tokens[i].kind {
		case tokenRightParen:
			return true
		case tokenEOF, tokenLeftParen, tokenLeftBrace, tokenRightBrace:
			return false
		}
	}
}

// argumentsBroken reports whether the word begins something else, so that the parenthesis must have been forgotten.
func (p *parser) argumentsBroken() bool {
	return p.tok().indent >= 0 && (p.startsAction() || p.leavesSection())
}
