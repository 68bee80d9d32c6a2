// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// tokenKind is what a token is.
type tokenKind int

const (
	tokenEOF tokenKind = iota
	tokenNewline
	tokenComment
	tokenWord
	tokenValue // what follows an equals sign
	tokenLeftBrace
	tokenRightBrace
	tokenLeftParen
	tokenRightParen
	tokenLeftBracket
	tokenRightBracket
	tokenComma
	tokenEquals
)

// punctuation are the characters that are tokens by themselves.
var punctuation = [256]tokenKind{
	'{': tokenLeftBrace, '}': tokenRightBrace,
	'(': tokenLeftParen, ')': tokenRightParen,
	'[': tokenLeftBracket, ']': tokenRightBracket,
	',': tokenComma, '=': tokenEquals,
}

// A token is the smallest piece with a meaning.
type token struct {
	kind tokenKind
	ast.Range
	text  string     // of a word or a comment
	value *ast.Value // of a value
	// indent is the width of the white space before the first token of a line, and -1 for the
	// tokens that follow.
	indent int
}

// describe names the token for a message.
func (t token) describe() string {
	switch t.kind {
	case tokenEOF:
		return "the end of the file"
	case tokenNewline:
		return "the end of the line"
	case tokenComment:
		return "a comment"
	case tokenValue:
		return "a value"
	case tokenWord:
		return fmt.Sprintf("%q", t.text)
	}
	for c, kind := range punctuation {
		if kind == t.kind {
			return fmt.Sprintf("%q", string(rune(c)))
		}
	}
	return "something else"
}

const byteOrderMark = "\uFEFF"

// A scanner cuts the text into tokens, all at once.
type scanner struct {
	file   *ast.File
	src    string
	pos    int
	tokens []token
	list   diag.List
	// sawCR is set when a carriage return was reported: once is enough.
	sawCR bool
	// lineStart is true until the first token of a line has been added.
	lineStart bool
	indent    int
	// inParens is true between the parentheses of an action, inSet between those of a selector.
	inParens, inSet bool
	// eolFrom and eol keep the last result of lineEnd, noBlockEnd that no "*/" follows. They keep
	// the time linear for odd texts.
	eolFrom, eol int
	noBlockEnd   bool
}

func scan(file *ast.File, src string) ([]token, diag.List) {
	s := &scanner{file: file, src: src, lineStart: true, eol: -1}
	if strings.HasPrefix(src, byteOrderMark) {
		s.report(diag.ByteOrderMark, 0, len(byteOrderMark), "the document begins with a byte order mark", "ctrlkit fmt removes it")
		s.pos = len(byteOrderMark)
	}
	for s.pos < len(s.src) {
		s.next()
	}
	s.add(tokenEOF, s.pos, "")
	return s.tokens, s.list
}

func (s *scanner) report(code diag.Code, start, end int, message, hint string) {
	from, to := s.file.Position(ast.Range{Start: start, End: end})
	s.list = append(s.list, diag.Diagnostic{Code: code, Start: from, End: to, Message: message, Hint: hint})
}

// add appends the token that begins at start and ends at the current position.
func (s *scanner) add(kind tokenKind, start int, text string) *token {
	t := token{kind: kind, Range: ast.Range{Start: start, End: s.pos}, text: text, indent: -1}
	if s.lineStart && kind != tokenNewline {
		t.indent = s.indent
		s.lineStart = false
	}
	s.tokens = append(s.tokens, t)
	return &s.tokens[len(s.tokens)-1]
}

func (s *scanner) next() {
	start, c := s.pos, s.src[s.pos]
	switch {
	case c == '\n':
		s.pos++
		s.add(tokenNewline, start, "")
		s.lineStart, s.indent = true, 0
	case c == ' ' || c == '\t':
		s.pos++
		if s.lineStart {
			s.indent++
		}
	case c == '\r' && strings.HasPrefix(s.src[start:], "\r\n"):
		s.carriageReturn()
	case strings.HasPrefix(s.src[start:], "//"):
		s.comment()
	case c == '#':
		s.report(diag.BadComment, start, start+1, `comments begin with "//"`, `write "//" in its place`)
		s.pos = s.lineEnd()
	case strings.HasPrefix(s.src[start:], "/*"):
		s.blockComment()
	case punctuation[c] != 0:
		s.pos++
		s.add(punctuation[c], start, "")
		s.afterPunctuation(c)
	case c == '"':
		s.quotedWord()
	case c == '$':
		s.strayReference()
	default:
		s.word()
	}
}

// afterPunctuation reads the value after an equals sign. Between parentheses none is expected.
func (s *scanner) afterPunctuation(c byte) {
	switch c {
	case '(':
		if s.beginsSet() {
			s.set()
		} else {
			s.inParens = true
		}
	case ')', '{', '}':
		s.inParens = false
	case '=':
		if !s.inParens {
			s.value()
		}
	}
}

func (s *scanner) carriageReturn() {
	if !s.sawCR {
		s.sawCR = true
		s.report(diag.CarriageReturn, s.pos, s.pos+1, "lines end with a carriage return", "ctrlkit fmt removes them")
	}
	s.pos++
}

// lineEnd returns the offset of the end of the line: of its newline, or of the carriage return
// before that.
func (s *scanner) lineEnd() int {
	if s.eolFrom <= s.pos && s.pos <= s.eol {
		return s.eol
	}
	end := len(s.src)
	if n := strings.IndexByte(s.src[s.pos:], '\n'); n >= 0 {
		end = s.pos + n
		if end > s.pos && s.src[end-1] == '\r' {
			end--
		}
	}
	s.eolFrom, s.eol = s.pos, end
	return end
}

func (s *scanner) comment() {
	start := s.pos
	end := s.lineEnd()
	for s.pos < end {
		s.rune(commentText)
	}
	text := strings.TrimRightFunc(s.src[start:end], unicode.IsSpace)
	s.add(tokenComment, start, text).End = start + len(text)
}

func (s *scanner) blockComment() {
	start, end := s.pos, -1
	s.report(diag.BadComment, start, start+2, `comments begin with "//" on every line`, `write "//" before the text of each line`)
	if !s.noBlockEnd {
		end = strings.Index(s.src[start+2:], "*/")
	}
	if end < 0 {
		s.noBlockEnd = true
		s.pos = s.lineEnd()
		return
	}
	s.pos = start + 2 + end + 2
}

// A textPlace is where a character is. Comments and quoted text allow more characters than words
// do.
type textPlace int

const (
	wordText textPlace = iota
	commentText
	quotedText
)

// rune reads one character, adds a diagnostic if it is not allowed, and reports whether it is.
func (s *scanner) rune(place textPlace) (rune, bool) {
	start := s.pos
	if c := s.src[start]; ' ' <= c && c < 0x7f {
		s.pos++
		return rune(c), true
	}
	r, size := utf8.DecodeRuneInString(s.src[start:])
	s.pos += size
	switch {
	case r == utf8.RuneError && size == 1:
		for s.pos < len(s.src) && !utf8.RuneStart(s.src[s.pos]) {
			s.pos++ // the rest of one broken sequence is one mistake
		}
		s.report(diag.InvalidUTF8, start, s.pos, fmt.Sprintf("text is not UTF-8: byte 0x%02x", s.src[start]), "save the document as UTF-8")
		return r, false
	case r == '\t' && place != wordText:
		return r, true
	case unicode.IsControl(r):
		s.report(diag.IllegalCharacter, start, s.pos, fmt.Sprintf("illegal control character U+%04X", r), "remove it")
		return r, false
	case isBidi(r):
		s.report(diag.IllegalCharacter, start, s.pos, fmt.Sprintf("illegal character U+%04X, which changes the order in which text is shown", r),
			fmt.Sprintf(`remove it, or write "\u%04x" in a quoted value`, r))
		return r, false
	case r == '\uFEFF' || place == wordText && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)):
		s.report(diag.IllegalCharacter, start, s.pos, fmt.Sprintf("illegal invisible character U+%04X", r), "replace it with a space, or remove it")
		return r, false
	}
	return r, true
}

// isBidi reports whether a character embeds, overrides or isolates text in another direction: a
// reader would see other text than the one that counts.
func isBidi(r rune) bool { return '\u202A' <= r && r <= '\u202E' || '\u2066' <= r && r <= '\u2069' }

// inWord reports whether the byte continues a word. Bytes that are not ASCII do, so that a name is
// one mistake at most.
func inWord(c byte) bool {
	return !isBlank(c) && punctuation[c] == 0 && c != '"' && c != '$'
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (s *scanner) word() {
	start := s.pos
	if s.plainWord() {
		return
	}
	var text strings.Builder
	for s.pos < len(s.src) && (inWord(s.src[s.pos]) || s.pos == start) {
		if s.pos > start && strings.HasPrefix(s.src[s.pos:], "//") && s.src[s.pos-1] != ':' {
			s.attachedComment()
			break
		}
		from := s.pos
		r, ok := s.rune(wordText)
		if ok {
			text.WriteString(s.src[from:s.pos])
		} else if unicode.IsSpace(r) {
			break
		}
	}
	if text.Len() == 0 {
		return
	}
	s.add(tokenWord, start, text.String())
}

// plainWord reads a word of printable ASCII characters, as nearly all are, and reports whether
// there is one.
func (s *scanner) plainWord() bool {
	start, end := s.pos, s.pos
	for end < len(s.src) && ' ' < s.src[end] && s.src[end] < 0x7f && inWord(s.src[end]) {
		if s.src[end] == '/' && strings.HasPrefix(s.src[end:], "//") {
			return false
		}
		end++
	}
	if end == start || end < len(s.src) && inWord(s.src[end]) {
		return false
	}
	s.pos = end
	s.add(tokenWord, start, s.src[start:end])
	return true
}

// attachedComment reports two slashes without a space before them. They are then read as a comment.
func (s *scanner) attachedComment() {
	s.report(diag.BadComment, s.pos, s.pos+2, `"//" right after text`,
		`put a space before a comment, or quotes around a value that contains "//"`)
}

// quotedWord reads text between quotes where no value is expected.
func (s *scanner) quotedWord() {
	start := s.pos
	parts := s.quoted()
	s.report(diag.Unexpected, start, s.pos, "unexpected quotes", "only values after = are quoted")
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	if text.Len() > 0 {
		s.add(tokenWord, start, text.String())
	}
}

// strayReference reads a dollar sign where no value is expected.
func (s *scanner) strayReference() {
	start := s.pos
	s.pos++
	if s.pos < len(s.src) && s.src[s.pos] == '{' {
		s.pos--
		if _, ok := s.reference(wordText); !ok {
			return
		}
	}
	s.report(diag.Unexpected, start, s.pos, "unexpected reference", "use references only in values, as in name=${target.Name}")
}
