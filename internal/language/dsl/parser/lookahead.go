// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import "strings"

// startsTopLevel reports whether a statement begins here that cannot be in a block.
func (c *cursor) startsTopLevel() bool {
	t := c.tok()
	if t.kind != tokenWord || t.indent < 0 || c.peek(1) != tokenWord || c.peek(2) != tokenWord {
		return false
	}
	switch t.text {
	case "decl":
		return c.tokens[c.pos+2].text == "for"
	case "bind", "alias":
		return strings.Contains(c.tokens[c.pos+1].text+c.tokens[c.pos+2].text, "/")
	}
	return false
}

// startsSection reports whether a section begins here. A state may have the name state: it has a
// kind before its brace.
func (c *cursor) startsSection() bool {
	t := c.tok()
	return t.kind == tokenWord && (t.text == "state" || t.text == "action") && c.peek(1) == tokenLeftBrace
}

func (c *cursor) leavesSection() bool { return c.startsTopLevel() || c.startsSection() }

// startsState reports whether this line is the head of a state, up to its opening brace.
func (c *cursor) startsState() bool {
	if c.peek(0) != tokenWord {
		return false
	}
	if c.peek(1) == tokenLeftBracket && c.peek(2) == tokenRightBracket {
		return c.peek(3) == tokenWord
	}
	return c.peek(1) == tokenWord && c.peek(2) == tokenLeftBrace
}

func (c *cursor) leavesState() bool { return c.leavesSection() || c.startsState() }

func (c *cursor) startsSelector() bool {
	t := c.tok()
	return t.text == "owned" && c.peek(1) != tokenWord && c.peek(1) != tokenLeftBracket || c.peek(1) == tokenEquals
}

func (c *cursor) startsAction() bool { return c.peek(1) == tokenLeftParen }

// guessSection returns the keyword that a block with an unknown keyword should have, going by its
// first line, or "".
func (c *cursor) guessSection() string {
	save := c.pos
	defer func() { c.pos = save }()
	c.pos += 2
	for c.tok().kind == tokenNewline || c.tok().kind == tokenComment {
		c.next()
	}
	switch {
	case c.startsState():
		return "state"
	case c.peek(0) == tokenWord && c.startsAction():
		return "action"
	}
	return ""
}

// closes reports whether a closing parenthesis comes before anything that is not allowed among
// arguments.
func (c *cursor) closes() bool {
	for i := c.pos; ; i++ {
		switch c.tokens[i].kind {
		case tokenRightParen:
			return true
		case tokenEOF, tokenLeftParen, tokenLeftBrace, tokenRightBrace:
			return false
		}
	}
}

// argumentsBroken reports whether the word begins something else, so that the closing parenthesis
// is missing.
func (c *cursor) argumentsBroken() bool {
	return c.tok().indent >= 0 && (c.startsAction() || c.leavesSection())
}
