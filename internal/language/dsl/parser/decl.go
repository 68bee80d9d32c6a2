// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import (
	"fmt"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

const declHas = "a decl has state { ... } and action { ... }"

var sections = []string{"action", "state"}

// section reads `state { ... }` or `action { ... }`.
func (p *parser) section(lead ast.Lead) ast.Item {
	t := p.tok()
	if t.kind != tokenWord {
		p.report(diag.Unexpected, t, fmt.Sprintf("expected state or action, found %s", t.describe()), declHas)
		p.skipStatement()
		return nil
	}
	keyword := t.text
	if keyword != "state" && keyword != "action" {
		near, _ := printable.Near(keyword, sections)
		if near == "" && p.peek(1) == tokenLeftBrace {
			near = p.guessSection()
		}
		if near == "" {
			return p.strayInDecl(t)
		}
		p.report(diag.UnknownStatement, t, fmt.Sprintf("unknown block %q", keyword), fmt.Sprintf("did you mean %q?", near))
		keyword = near
	}
	p.next()
	n := &ast.Section{Lead: lead, Range: t.Range, Keyword: ast.Word{Text: keyword, Range: t.Range}}
	form := blockForm{what: keyword, head: t.Range, indent: t.indent, leaves: p.leavesSection}
	if keyword == "state" {
		form.starts, form.item = p.startsState, p.state
	} else {
		form.starts, form.item = p.startsAction, p.action
	}
	p.block(&n.Body, form)
	n.End = max(n.End, n.Body.End)
	return n
}

// strayInDecl reports what is in a decl but outside of its blocks.
func (p *parser) strayInDecl(t token) ast.Item {
	hint := declHas
	switch {
	case p.startsState():
		hint = "states belong in state { ... }"
	case p.startsAction():
		hint = "actions belong in action { ... }"
	}
	p.report(diag.UnknownStatement, t, fmt.Sprintf("unexpected %q in a decl", t.text), hint)
	p.skipStatement()
	return nil
}

func (p *parser) state(lead ast.Lead) ast.Item {
	n := &ast.State{Lead: lead}
	start := p.tok()
	const form = "write NAME KIND { for one object or NAME []KIND { for a list"
	if start.kind == tokenWord && p.startsAction() {
		p.report(diag.Unexpected, start, fmt.Sprintf("action %s is in a state block", start.text), "actions belong in action { ... }")
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
		p.report(diag.Unexpected, start, fmt.Sprintf("selector %s is outside of a state", start.text), form)
		p.skipLine()
		return nil
	}
	if n.Kind, ok = p.word("a kind", form); !ok && p.tok().kind != tokenLeftBrace {
		p.skipStatement()
		return nil
	}
	n.Range = ast.Range{Start: start.Start, End: p.last().End}
	p.block(&n.Body, blockForm{
		what: "state " + n.Name.Text, head: n.Range, indent: start.indent,
		starts: p.startsSelector, leaves: p.leavesState, item: p.selector,
	})
	n.End = max(n.End, n.Body.End)
	return n
}

func (p *parser) selector(lead ast.Lead) ast.Item {
	t := p.tok()
	key, ok := p.word("a selector", "the selectors are name=, namespace=, labels/KEY=, fields/PATH= and owned")
	if !ok {
		p.skipStatement()
		return nil
	}
	n := &ast.Selector{Lead: lead, Key: key, Range: key.Range}
	if p.tok().kind == tokenLeftBracket && p.tok().Start == key.End {
		p.bracket(key)
		return nil
	}
	if p.tok().kind == tokenLeftBracket || p.tok().kind == tokenLeftBrace {
		p.report(diag.Unexpected, t, fmt.Sprintf("expected a selector, found %q and a block", key.Text), "a state has no blocks in it")
		p.skipStatement()
		return nil
	}
	hint := "put each selector on a line of its own"
	switch next := p.tok(); {
	case next.kind == tokenWord && isSetOperator(next.text) && p.peek(1) == tokenLeftParen:
		p.set(n)
	case next.kind == tokenWord && isSetOperator(next.text):
		hint = fmt.Sprintf("write %s %s (VALUE, VALUE)", key.Text, next.text)
	case next.kind == tokenWord && next.text == "!" && p.peek(1) == tokenEquals:
		hint = fmt.Sprintf("write %s!=VALUE", key.Text)
	case next.kind == tokenEquals:
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

// set reads `in (VALUE, ...)` or `notin (VALUE, ...)`.
func (p *parser) set(n *ast.Selector) {
	op := p.next()
	n.Op = ast.Word{Text: op.text, Range: op.Range}
	n.End = p.next().End
	form := fmt.Sprintf("write %s %s (VALUE, VALUE)", n.Key.Text, op.text)
	for more := true; more; {
		v := p.tok()
		if v.kind != tokenValue {
			p.report(diag.Unexpected, p.here(), fmt.Sprintf("expected a value, found %s", v.describe()), form)
			p.skipLine()
			return
		}
		n.Set, n.End = append(n.Set, v.value), v.End
		p.next()
		more = p.got(tokenComma)
	}
	if t := p.tok(); p.got(tokenRightParen) {
		n.End = t.End
	} else {
		p.report(diag.Unexpected, p.here(), fmt.Sprintf(`expected a comma or ")", found %s`, t.describe()), form)
		p.skipLine()
	}
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
		hint = "fields in lists and maps cannot be selected"
	}
	p.report(diag.BadFieldPath, ast.Range{Start: start.Start, End: end}, fmt.Sprintf("index in the selector %s", key.Text), hint)
	p.skipLine()
}
