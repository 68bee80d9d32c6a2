// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import (
	"fmt"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

func (p *parser) action(lead ast.Lead) ast.Item {
	const form = "write NAME() or NAME(STATE, ...)"
	n := &ast.Action{Lead: lead}
	start := p.tok()
	if p.startsState() {
		p.report(diag.Unexpected, start, fmt.Sprintf("state %s is in an action block", start.text), "states belong in state { ... }")
		p.skipStatement()
		return nil
	}
	var ok bool
	if n.Name, ok = p.word("the name of an action", form); !ok {
		p.skipStatement()
		return nil
	}
	n.Range = n.Name.Range
	if p.tok().kind != tokenLeftParen {
		p.report(diag.Unexpected, p.here(), fmt.Sprintf(`expected "(", found %s`, p.tok().describe()), form)
		p.skipStatement()
		return n
	}
	p.arguments(n)
	n.End = p.last().End
	n.Trailing = p.endOfLine("after the action", "put each action on a line of its own")
	return n
}

// arguments reads `(STATE, ...)`, which may take several lines.
func (p *parser) arguments(n *ast.Action) {
	a := argumentList{parser: p, action: n, paren: p.next(), comma: true}
	n.Open = p.comment()
	a.closes = p.closes()
	a.line = p.pos
	for a.next() {
	}
}

// An argumentList reads what is between the parentheses of an action.
type argumentList struct {
	*parser
	action *ast.Action
	paren  token
	doc    []ast.Comment // comments before the next argument
	last   *ast.Arg      // the argument that a comment on this line belongs to
	comma  bool          // whether an argument may follow
	closes bool          // whether the parenthesis is closed at all
	line   int           // the end of the last line with an argument
}

// next reads one token of the list and reports whether the list continues.
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
			a.report(diag.Unexpected, t, "expected a state, found a comma", "remove the comma")
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
		a.report(diag.Unexpected, t, fmt.Sprintf("expected a state, found %s", t.describe()), "an action has the names of states between its parentheses")
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
		a.report(diag.Unexpected, t, fmt.Sprintf("expected a comma, found %s", t.describe()), "states are separated by commas")
	}
	a.parser.next()
	a.last = &ast.Arg{Lead: ast.Lead{Doc: a.doc}, Name: ast.Word{Text: t.text, Range: t.Range}}
	a.action.Args = append(a.action.Args, a.last)
	a.doc, a.comma = nil, false
	return true
}

func (a *argumentList) unclosed() {
	a.report(diag.UnclosedArguments, a.paren, fmt.Sprintf(`"(" of action %s is never closed`, a.action.Name.Text),
		"add a ) after the states")
}
