// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package parser parses a document into its syntax tree.
//
// [Parse] never fails: it returns the tree of what it understands, and a diagnostic for everything
// else. A mistake costs the line that it is in, or the block whose braces do not match, and nothing
// else. The time is linear in the length of the text.
//
// The grammar is in grammar.ebnf; a test compares it with the parser in both directions. The parser
// does not look up names: package check does.
//
// In the order in which a text passes through it: the scanner (scanner.go, value.go) cuts the text
// into tokens, a cursor (cursor.go, lookahead.go) steps through them, and the parser reads the
// statements (parser.go, decl.go, action.go) and the blocks around them (block.go).
package parser
