// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// value reads the value after an equals sign. If there is none, it adds no token. A value with a
// mistake in it has no parts, so that the checker does not report the rest of it.
func (s *scanner) value() {
	for s.pos < len(s.src) && (s.src[s.pos] == ' ' || s.src[s.pos] == '\t') {
		s.pos++
	}
	start, mistakes := s.pos, len(s.list)
	var v ast.Value
	if s.pos < len(s.src) && s.src[s.pos] == '"' {
		v.Quoted = true
		v.Parts = s.quoted()
		s.afterQuote()
	} else {
		v.Parts = s.bare()
		if s.pos == start {
			return
		}
	}
	v.Range = ast.Range{Start: start, End: s.pos}
	if len(s.list) > mistakes {
		v.Bad, v.Parts = true, nil
	}
	s.add(tokenValue, start, "").value = &v
}

// isSetOperator reports whether a set of values follows the word in a selector.
func isSetOperator(word string) bool { return word == "in" || word == "notin" }

// beginsSet reports whether the parenthesis that was read is that of a selector, as in `KEY in (`.
func (s *scanner) beginsSet() bool {
	n := len(s.tokens) - 3
	return n >= 0 && !s.inParens && s.tokens[n].kind == tokenWord && s.tokens[n+1].kind == tokenWord && isSetOperator(s.tokens[n+1].text)
}

// set reads values with commas between them, up to the closing parenthesis on the same line.
func (s *scanner) set() {
	s.inSet = true
	defer func() { s.inSet = false }()
	for s.pos < len(s.src) {
		start := s.pos
		switch c := s.src[start]; c {
		case ' ', '\t':
			s.pos++
		case ',', ')':
			s.pos++
			s.add(punctuation[c], start, "")
			if c == ')' {
				return
			}
		default:
			if s.value(); s.pos == start {
				return // something else
			}
		}
	}
}

// afterQuote reports text right after the closing quote.
func (s *scanner) afterQuote() {
	start := s.pos
	for s.pos < len(s.src) && (inWord(s.src[s.pos]) || s.src[s.pos] == '$' || s.src[s.pos] == '"') && !strings.HasPrefix(s.src[s.pos:], "//") {
		s.pos++
	}
	if s.pos > start {
		s.report(diag.NeedsQuotes, start, s.pos, "text after the closing quote", "put the whole value between quotes")
	}
}

// needsQuotes are the characters that a value may only contain between quotes.
const needsQuotes = "\"'`\\,()[]{="

// bare reads a value without quotes: up to white space, a closing brace, or the end of the line.
func (s *scanner) bare() []ast.Part {
	var v valueBuilder
	start, bad := s.pos, byte(0)
	for s.pos < len(s.src) {
		c := s.src[s.pos]
		switch {
		case c <= ' ' && c != 0 && strings.IndexByte(" \t\r\n", c) >= 0, c == '}', s.inSet && (c == ',' || c == ')'):
			s.reportBare(start, bad)
			v.flush()
			return v.parts
		case strings.HasPrefix(s.src[s.pos:], "//"):
			if s.pos > start && s.src[s.pos-1] == ':' {
				bad = '/'
				s.text(&v, wordText)
				continue
			}
			if s.pos > start {
				s.attachedComment()
			}
			s.reportBare(start, bad)
			v.flush()
			return v.parts
		case strings.HasPrefix(s.src[s.pos:], "${"):
			if ref, ok := s.reference(wordText); ok {
				v.addRef(ref)
			}
		case c == '$':
			s.dollar()
		case strings.IndexByte(needsQuotes, c) >= 0:
			if bad == 0 {
				bad = c
			}
			s.text(&v, wordText)
		default:
			s.text(&v, wordText)
		}
	}
	s.reportBare(start, bad)
	v.flush()
	return v.parts
}

func (s *scanner) reportBare(start int, bad byte) {
	if bad == 0 {
		return
	}
	hint := "write " + strconv.Quote(s.src[start:s.pos])
	if bad == '"' || bad == '\'' || bad == '`' || bad == '\\' {
		hint = `put the whole value between double quotes`
	}
	what := string(bad)
	if bad == '/' {
		what = "//"
	}
	s.report(diag.NeedsQuotes, start, s.pos, fmt.Sprintf("a value with %s in it needs quotes", what), hint)
}

// dollar reports a dollar sign that does not begin a reference, and skips it.
func (s *scanner) dollar() {
	start := s.pos
	s.pos++
	open := s.pos < len(s.src) && s.src[s.pos] == '('
	if open {
		s.pos++
	}
	hint := `write "\$" between quotes for a dollar sign, or ${target.FIELD} for a reference`
	end := s.pos
	for end < len(s.src) && (isIdent(s.src[end]) || s.src[end] == '.') {
		end++
	}
	if name := s.src[s.pos:end]; name == "target" || strings.HasPrefix(name, "target.") {
		hint = "write ${" + name + "}"
		s.pos = end
		if open && end < len(s.src) && s.src[end] == ')' {
			s.pos++
		}
	}
	s.report(diag.NeedsQuotes, start, s.pos, `"$" does not begin a reference`, hint)
}

// A valueBuilder collects the parts of a value.
type valueBuilder struct {
	parts []ast.Part
	text  strings.Builder
	span  ast.Range // of the text
}

func (b *valueBuilder) addText(text string, span ast.Range) {
	if b.text.Len() == 0 {
		b.span = span
	}
	b.text.WriteString(text)
	b.span.End = span.End
}

func (b *valueBuilder) addRef(ref *ast.Ref) {
	b.flush()
	b.parts = append(b.parts, ast.Part{Range: ref.Range, Ref: ref})
}

func (b *valueBuilder) flush() {
	if b.text.Len() > 0 {
		b.parts = append(b.parts, ast.Part{Range: b.span, Text: b.text.String()})
		b.text.Reset()
	}
}

// text appends the next character to the value.
func (s *scanner) text(v *valueBuilder, place textPlace) {
	start := s.pos
	if _, ok := s.rune(place); ok {
		v.addText(s.src[start:s.pos], ast.Range{Start: start, End: s.pos})
	}
}

// quoted reads a value between double quotes, beginning at the first of them.
func (s *scanner) quoted() []ast.Part {
	var v valueBuilder
	start, end := s.pos, s.lineEnd()
	s.pos++
	for s.pos < end {
		switch {
		case s.src[s.pos] == '"':
			s.pos++
			v.flush()
			return v.parts
		case s.src[s.pos] == '\\':
			s.escape(&v, end)
		case strings.HasPrefix(s.src[s.pos:], "${"):
			if ref, ok := s.reference(quotedText); ok {
				v.addRef(ref)
			}
		case s.src[s.pos] == '$':
			s.dollar()
		default:
			s.text(&v, quotedText)
		}
	}
	s.report(diag.UnclosedQuote, start, s.pos, "quote is never closed", `add a " at the end of the value`)
	return nil
}

// simpleEscapes are the escapes of one character.
var simpleEscapes = map[byte]string{'"': `"`, '\\': `\`, '$': `$`, 'n': "\n", 't': "\t"}

func (s *scanner) escape(v *valueBuilder, end int) {
	start := s.pos
	s.pos++
	if s.pos >= end {
		s.badEscape(start)
		return
	}
	c := s.src[s.pos]
	digits := map[byte]int{'u': 4, 'U': 8}[c]
	switch {
	case simpleEscapes[c] != "":
		s.pos++
		v.addText(simpleEscapes[c], ast.Range{Start: start, End: s.pos})
	case digits > 0:
		s.pos++
		from := s.pos
		for s.pos < end && s.pos < from+digits && isHex(s.src[s.pos]) {
			s.pos++
		}
		n, err := strconv.ParseUint(s.src[from:s.pos], 16, 32)
		if err != nil || s.pos < from+digits || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
			s.badEscape(start)
			return
		}
		v.addText(string(rune(n)), ast.Range{Start: start, End: s.pos})
	default:
		s.rune(quotedText)
		s.badEscape(start)
	}
}

func (s *scanner) badEscape(start int) {
	text := strconv.QuoteToASCII(s.src[start:s.pos])
	text = strings.Replace(text, `\\`, `\`, 1) // as in the document
	s.report(diag.BadEscape, start, s.pos, "unknown escape "+text,
		`the escapes are \" \\ \$ \n \t \u1234 and \U00012345`)
}

// reference reads `${...}`, beginning at the dollar sign, and reports whether it is well formed.
func (s *scanner) reference(place textPlace) (*ast.Ref, bool) {
	start := s.pos
	s.pos += len("${")
	s.blanks()
	ref := &ast.Ref{}
	wellFormed := s.path(ref)
	if ref.Optional = wellFormed && s.pos < len(s.src) && s.src[s.pos] == '?'; ref.Optional {
		s.pos++
		from := s.pos
		for s.pos < len(s.src) && (isIdent(s.src[s.pos]) || s.pos > from && (s.src[s.pos] == '-' || s.src[s.pos] == '.')) {
			s.pos++
		}
		ref.Default = ast.Word{Text: s.src[from:s.pos], Range: ast.Range{Start: from, End: s.pos}}
	}
	s.blanks()
	if s.pos < len(s.src) && s.src[s.pos] == '}' {
		s.pos++
		ref.Range = ast.Range{Start: start, End: s.pos}
		if !wellFormed {
			s.reportPath(ref)
		}
		return ref, wellFormed
	}
	// There is something else before the closing brace, or no closing brace.
	end := s.pos
	for end < len(s.src) && s.src[end] != '}' && s.src[end] != '\n' && !strings.HasPrefix(s.src[end:], "${") {
		if s.src[end] == '"' && place == quotedText {
			break
		}
		end++
	}
	if end == len(s.src) || s.src[end] != '}' {
		s.report(diag.UnclosedReference, start, s.pos, "reference is never closed", "add a } after the name")
		return nil, false
	}
	s.pos = end + 1
	ref.Range = ast.Range{Start: start, End: s.pos}
	s.reportPath(ref)
	return nil, false
}

func (s *scanner) reportPath(ref *ast.Ref) {
	text := s.src[ref.Start+len("${") : ref.End-1]
	hint := "write ${target.FIELD}, or ${target.FIELD.FIELD} and so on"
	switch {
	case strings.Contains(text, "("):
		hint = "name a field: methods are not called"
	case strings.Contains(text, "?"):
		hint = "write the ? after the whole path, as in ${target.FIELD.FIELD?}, and a default of letters, digits, -, _ and . after it"
	case strings.Contains(text, "["):
		hint = "name a field, FIELD[] for all elements of a list, or FIELD[KEY] for what a map has: a single element of a list cannot be referred to"
	}
	s.report(diag.BadReference, ref.Start, ref.End, fmt.Sprintf("malformed reference %q", s.src[ref.Start:ref.End]), hint)
}

// path reads names with dots between them, and reports whether each dot is followed by a name. A
// name may end in [], or in a key of a map in brackets.
func (s *scanner) path(ref *ast.Ref) bool {
	for {
		start := s.pos
		for s.pos < len(s.src) && isIdent(s.src[s.pos]) {
			s.pos++
		}
		if s.pos == start {
			return false
		}
		if s.pos < len(s.src) && s.src[s.pos] == '[' {
			s.pos++
			for s.pos < len(s.src) && isMapKey(s.src[s.pos]) {
				s.pos++
			}
			if s.pos >= len(s.src) || s.src[s.pos] != ']' {
				return false
			}
			s.pos++
		}
		ref.Path = append(ref.Path, ast.Word{Text: s.src[start:s.pos], Range: ast.Range{Start: start, End: s.pos}})
		if s.pos >= len(s.src) || s.src[s.pos] != '.' {
			return true
		}
		s.pos++
	}
}

func (s *scanner) blanks() {
	for s.pos < len(s.src) && (s.src[s.pos] == ' ' || s.src[s.pos] == '\t') {
		s.pos++
	}
}

func isIdent(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isMapKey reports whether a key of a map in a reference may have the character, as those of labels
// have.
func isMapKey(c byte) bool { return isIdent(c) || c == '-' || c == '.' || c == '/' }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
