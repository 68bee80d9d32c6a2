// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package checktest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/exp/ebnf"
)

// A Grammar is that of a document, with what it says in words.
type Grammar struct {
	// Text is the file grammar.ebnf of package parser.
	Text        string
	productions ebnf.Grammar
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

// ReadGrammar reads grammar.ebnf. It is an error if a production is missing, or is not used.
func ReadGrammar() (*Grammar, error) {
	root, err := thisModule()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "internal", "language", "dsl", "parser", "grammar.ebnf"))
	if err != nil {
		return nil, fmt.Errorf("reading the grammar: %w", err)
	}
	all := "Words = Document kind key .\n" // the checker requires the last two
	productions, err := ebnf.Parse("grammar.ebnf", strings.NewReader(all+string(text)))
	if err == nil {
		err = ebnf.Verify(productions, "Words")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the grammar: %w", err)
	}
	commentChar := func(r rune) bool {
		return r == '\t' || !unicode.IsControl(r) && r != '\uFEFF' && (r < '\u202A' || r > '\u202E') && (r < '\u2066' || r > '\u2069')
	}
	wordChar := func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && !strings.ContainsRune(`{}()[],="$`, r)
	}
	common := []string{"a", "B", "7", "/", ":", ".", "-", "*", "#", "é", "日"}
	return &Grammar{
		Text:        string(text),
		productions: productions,
		classes: map[string]class{
			"comment_char": {commentChar, append([]string{" ", "\t", "{", "}", `"`, "$", "="}, common...)},
			"quoted_char": {
				func(r rune) bool { return commentChar(r) && !strings.ContainsRune(`"\$`, r) },
				append([]string{" ", "\t", "{", "}", "'", "//"}, common...),
			},
			"word_char": {wordChar, append([]string{"'", "`", `\`}, common...)},
			"bare_char": {func(r rune) bool { return wordChar(r) && !strings.ContainsRune("'`\\", r) }, common},
			"letter":    {func(r rune) bool { return r == '_' || unicode.IsLetter(r) }, []string{"a", "_", "É"}},
		},
		restrictions: map[string]func(string) bool{
			"word":   isWord,
			"bare":   func(s string) bool { return !strings.Contains(s, "//") },
			"escape": isEscape,
		},
	}, nil
}

// isToken reports whether a production is one token: nothing stands between its parts.
func isToken(production string) bool { return unicode.IsLower(rune(production[0])) }

// ends returns the first and the last character of a range.
func ends(e *ebnf.Range) (from, to rune) { return []rune(e.Begin.String)[0], []rune(e.End.String)[0] }

func isWord(s string) bool {
	if strings.HasPrefix(s, "#") || strings.HasPrefix(s, "/*") {
		return false
	}
	for i := range s {
		if strings.HasPrefix(s[i:], "//") && (i == 0 || s[i-1] != ':') {
			return false
		}
	}
	return true
}

func isEscape(s string) bool {
	if len(s) <= len(`\n`) {
		return true
	}
	n, err := strconv.ParseUint(s[2:], 16, 32)
	return err == nil && n <= utf8.MaxRune && utf8.ValidRune(rune(n))
}

// A recognizer decides whether a text is a sentence of a grammar. It remembers where each
// production can end that begins at a place, so that it needs no lookahead.
type recognizer struct {
	*Grammar
	text string
	ends map[beginning][]int
}

type beginning struct {
	name string
	at   int
}

// Accepts reports whether the whole text is what the production stands for.
func (g *Grammar) Accepts(production, text string) bool {
	r := &recognizer{Grammar: g, text: text, ends: map[beginning][]int{}}
	for _, end := range r.production(production, 0) {
		if !isToken(production) {
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
func (r *recognizer) production(n string, at int) []int {
	key := beginning{n, at}
	if ends, ok := r.ends[key]; ok {
		return ends
	}
	var ends []int
	if class, ok := r.classes[n]; ok {
		c, size := utf8.DecodeRuneInString(r.text[at:])
		if (c != utf8.RuneError || size > 1) && class.contains(c) {
			ends = []int{at + size}
		}
	} else {
		ends = r.match(r.productions[n].Expr, []int{at}, isToken(n))
	}
	r.ends[key] = ends
	return ends
}

// token returns where the token can end: in no place or in one.
func (r *recognizer) token(n string, at int) []int {
	ends := r.production(n, at)
	if len(ends) == 0 {
		return nil
	}
	end := slices.Max(ends)
	if allowed := r.restrictions[n]; allowed != nil && !allowed(r.text[at:end]) {
		return nil
	}
	return []int{end}
}

// match returns where the ebnf.Expression can end when it begins in one of the given places. Spaces are
// skipped before the tokens of what is no token itself.
func (r *recognizer) match(e ebnf.Expression, at []int, inToken bool) []int {
	switch e := e.(type) {
	case ebnf.Alternative:
		var ends []int
		for _, one := range e {
			ends = append(ends, r.match(one, at, inToken)...)
		}
		return unique(ends)
	case ebnf.Sequence:
		for _, part := range e {
			at = r.match(part, at, inToken)
		}
		return at
	case *ebnf.Group:
		return r.match(e.Body, at, inToken)
	case *ebnf.Option:
		return unique(append(slices.Clone(at), r.match(e.Body, at, inToken)...))
	case *ebnf.Repetition:
		all := map[int]bool{}
		for len(at) > 0 {
			for _, i := range at {
				all[i] = true
			}
			at = slices.DeleteFunc(r.match(e.Body, at, inToken), func(i int) bool { return all[i] })
		}
		return slices.Sorted(maps.Keys(all))
	}
	var ends []int
	for _, i := range at {
		if n, ok := e.(*ebnf.Name); !inToken && (!ok || isToken(n.String)) {
			i = r.skipBlanks(i)
		}
		ends = append(ends, r.terminal(e, i, inToken)...)
	}
	return unique(ends)
}

// terminal is match for what has no parts.
func (r *recognizer) terminal(e ebnf.Expression, at int, inToken bool) []int {
	switch e := e.(type) {
	case *ebnf.Name:
		if isToken(e.String) && (!inToken || r.restrictions[e.String] != nil) {
			return r.token(e.String, at)
		}
		return r.production(e.String, at)
	case *ebnf.Range:
		from, to := ends(e)
		if c, size := utf8.DecodeRuneInString(r.text[at:]); from <= c && c <= to {
			return []int{at + size}
		}
	case *ebnf.Token:
		if !strings.HasPrefix(r.text[at:], e.String) {
			return nil
		}
		end := at + len(e.String)
		if !inToken && unicode.IsLetter(rune(e.String[0])) && !slices.Contains(r.token("word", at), end) {
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
