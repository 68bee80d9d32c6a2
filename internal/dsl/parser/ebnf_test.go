// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/scanner"
	"unicode"
	"unicode/utf8"
)

// A grammar is a text in the notation of the Go specification, read. Productions without a body are
// defined by classes.
type grammar struct {
	productions map[string]expression
	// classes hold the characters of the productions that the grammar describes in words.
	classes map[string]class
	// restrictions are what a comment in the grammar says of a token in words.
	restrictions map[string]func(string) bool
}

// A class is a set of characters.
type class struct {
	contains func(rune) bool
	samples  []string // for generated sentences
}

// An expression is one of alternatives, sequence, repetition, option, literal, span and name.
type expression any

type (
	alternatives []expression
	sequence     []expression
	repetition   struct{ of expression }
	option       struct{ of expression }
	literal      string
	span         struct{ from, to rune }
	name         string
)

// isToken reports whether a production is one token: nothing stands between its parts.
func (n name) isToken() bool { return unicode.IsLower(rune(n[0])) }

// readGrammar reads the productions of a text.
func readGrammar(text string) (productions map[string]expression, err error) {
	r := &grammarReader{}
	r.Init(strings.NewReader(text))
	r.Mode = scanner.ScanIdents | scanner.ScanStrings | scanner.ScanRawStrings | scanner.ScanComments | scanner.SkipComments
	r.Error = func(_ *scanner.Scanner, message string) { panic(message) }
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%v: %v", r.Pos(), problem)
		}
	}()
	productions = map[string]expression{}
	for r.next(); r.tok != scanner.EOF; {
		name := r.take(scanner.Ident)
		if _, ok := productions[name]; ok {
			panic(name + " is defined twice")
		}
		r.take('=')
		productions[name] = r.alternatives()
		r.take('.')
	}
	return productions, nil
}

type grammarReader struct {
	scanner.Scanner
	tok rune
}

func (r *grammarReader) next() { r.tok = r.Scan() }

// take returns the text of the current token, which must be of the given kind.
func (r *grammarReader) take(want rune) string {
	if r.tok != want {
		panic(fmt.Sprintf("expected %s, found %s", scanner.TokenString(want), r.TokenText()))
	}
	text := r.TokenText()
	r.next()
	return text
}

func (r *grammarReader) alternatives() expression {
	list := alternatives{r.sequence()}
	for r.tok == '|' {
		r.next()
		list = append(list, r.sequence())
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

func (r *grammarReader) sequence() expression {
	var list sequence
	for {
		switch r.tok {
		case scanner.Ident:
			list = append(list, name(r.take(scanner.Ident)))
		case scanner.String, scanner.RawString:
			list = append(list, r.literal())
		case '(':
			list = append(list, r.bracketed('(', ')'))
		case '[':
			list = append(list, option{r.bracketed('[', ']')})
		case '{':
			list = append(list, repetition{r.bracketed('{', '}')})
		default:
			return list
		}
	}
}

func (r *grammarReader) bracketed(left, right rune) expression {
	r.take(left)
	inner := r.alternatives()
	r.take(right)
	return inner
}

// literal reads a literal or a span of characters.
func (r *grammarReader) literal() expression {
	text := func() string {
		s, err := strconv.Unquote(r.take(r.tok))
		if err != nil {
			panic(err)
		}
		return s
	}
	from := text()
	if r.tok != '…' {
		return literal(from)
	}
	r.next()
	return span{[]rune(from)[0], []rune(text())[0]}
}

// A recognizer decides whether a text is a sentence of a grammar. It remembers where each
// production can end that begins at a place, so that it needs no lookahead.
type recognizer struct {
	*grammar
	text string
	ends map[beginning][]int
}

type beginning struct {
	name name
	at   int
}

// accepts reports whether the whole text is what the production stands for.
func (g *grammar) accepts(production, text string) bool {
	r := &recognizer{grammar: g, text: text, ends: map[beginning][]int{}}
	start := name(production)
	for _, end := range r.production(start, 0) {
		if !start.isToken() {
			end = r.skipBlanks(end)
		}
		if end == len(text) {
			return true
		}
	}
	return false
}

// production returns where the production can end when it begins at a place. A token ends in one
// place: it is as long as it can be.
func (r *recognizer) production(n name, at int) []int {
	key := beginning{n, at}
	if ends, ok := r.ends[key]; ok {
		return ends
	}
	var ends []int
	if class, ok := r.classes[string(n)]; ok {
		c, size := utf8.DecodeRuneInString(r.text[at:])
		if (c != utf8.RuneError || size > 1) && class.contains(c) {
			ends = []int{at + size}
		}
	} else {
		ends = r.match(r.productions[string(n)], []int{at}, n.isToken())
	}
	r.ends[key] = ends
	return ends
}

// token returns where the token can end: in no place or in one.
func (r *recognizer) token(n name, at int) []int {
	ends := r.production(n, at)
	if len(ends) == 0 {
		return nil
	}
	end := slices.Max(ends)
	if allowed := r.restrictions[string(n)]; allowed != nil && !allowed(r.text[at:end]) {
		return nil
	}
	return []int{end}
}

// match returns where the expression can end when it begins in one of the given places. Spaces are
// skipped before the tokens of what is no token itself.
func (r *recognizer) match(e expression, at []int, inToken bool) []int {
	switch e := e.(type) {
	case alternatives:
		var ends []int
		for _, one := range e {
			ends = append(ends, r.match(one, at, inToken)...)
		}
		return unique(ends)
	case sequence:
		for _, part := range e {
			at = r.match(part, at, inToken)
		}
		return at
	case option:
		return unique(append(slices.Clone(at), r.match(e.of, at, inToken)...))
	case repetition:
		all := map[int]bool{}
		for len(at) > 0 {
			for _, i := range at {
				all[i] = true
			}
			at = slices.DeleteFunc(r.match(e.of, at, inToken), func(i int) bool { return all[i] })
		}
		return slices.Sorted(maps.Keys(all))
	}
	var ends []int
	for _, i := range at {
		if n, ok := e.(name); !inToken && (!ok || n.isToken()) {
			i = r.skipBlanks(i)
		}
		ends = append(ends, r.terminal(e, i, inToken)...)
	}
	return unique(ends)
}

// terminal is match for what has no parts.
func (r *recognizer) terminal(e expression, at int, inToken bool) []int {
	switch e := e.(type) {
	case name:
		if e.isToken() && (!inToken || r.restrictions[string(e)] != nil) {
			return r.token(e, at)
		}
		return r.production(e, at)
	case span:
		if c, size := utf8.DecodeRuneInString(r.text[at:]); e.from <= c && c <= e.to {
			return []int{at + size}
		}
	case literal:
		if !strings.HasPrefix(r.text[at:], string(e)) {
			return nil
		}
		end := at + len(e)
		if !inToken && unicode.IsLetter(rune(e[0])) && !slices.Contains(r.token("word", at), end) {
			return nil // only the beginning of a word
		}
		return []int{end}
	}
	return nil
}

func (r *recognizer) skipBlanks(at int) int {
	for at < len(r.text) && (r.text[at] == ' ' || r.text[at] == '\t') {
		at++
	}
	return at
}

func unique(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}
