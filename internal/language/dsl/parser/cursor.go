// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import "github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"

// A cursor is a place among the tokens of a document.
type cursor struct {
	tokens []token
	pos    int
}

func (c *cursor) tok() token { return c.tokens[c.pos] }

// peek returns the kind of the token n places ahead.
func (c *cursor) peek(n int) tokenKind {
	if c.pos+n >= len(c.tokens) {
		return tokenEOF
	}
	return c.tokens[c.pos+n].kind
}

// last returns the token that was read last.
func (c *cursor) last() token { return c.tokens[c.pos-1] }

// next returns the current token and steps to the one after it. It stays at the end of the file.
func (c *cursor) next() token {
	t := c.tokens[c.pos]
	if t.kind != tokenEOF {
		c.pos++
	}
	return t
}

// got reports whether the current token is of the kind, and steps to the next one if it is.
func (c *cursor) got(kind tokenKind) bool {
	if c.tok().kind != kind {
		return false
	}
	c.next()
	return true
}

// here returns the range of the current token. At the end of a line it is the empty range after the
// last token of the line.
func (c *cursor) here() ast.Range {
	t := c.tok()
	if (t.kind == tokenNewline || t.kind == tokenEOF || t.kind == tokenComment) && c.pos > 0 {
		if prev := c.tokens[c.pos-1]; prev.kind != tokenNewline && prev.kind != tokenComment {
			return ast.Range{Start: prev.End, End: prev.End}
		}
	}
	return t.Range
}

// skipLine skips to the end of the line, or to a closing brace that ends a block on the same line.
func (c *cursor) skipLine() {
	depth := 0
	for {
		switch c.tok().kind {
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
		c.next()
	}
}

// comment reads a comment on the same line, if one is there.
func (c *cursor) comment() *ast.Comment {
	t := c.tok()
	if t.kind != tokenComment {
		return nil
	}
	c.next()
	return &ast.Comment{Text: t.text, Range: t.Range}
}

// skipStatement skips a statement that is not understood, with its block if it has one.
func (c *cursor) skipStatement() {
	depth := 0
	for {
		switch c.tok().kind {
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
		if depth > 0 && c.startsTopLevel() {
			return
		}
		c.next()
	}
}

// skipArgument skips what is not a state, up to the next comma.
func (c *cursor) skipArgument() {
	for {
		switch c.tok().kind {
		case tokenEOF, tokenNewline, tokenComment, tokenComma, tokenLeftParen, tokenRightParen, tokenLeftBrace, tokenRightBrace:
			return
		}
		c.next()
	}
}
