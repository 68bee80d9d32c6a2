// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package checktest

import (
	"strings"
	"unicode"

	"golang.org/x/exp/ebnf"
	"pgregory.net/rapid"
)

// Sentence draws a document without mistakes in a random layout, and returns its comments, too.
func (g *Grammar) Sentence(t *rapid.T) (document string, comments []string) {
	s := &sentence{Grammar: g, t: t}
	s.add(g.productions["Document"].Expr)
	return s.text.String(), s.comments
}

// A sentence is a text that the grammar makes.
type sentence struct {
	*Grammar
	t    *rapid.T
	text strings.Builder
	// comments are those that are in it, without white space at their ends.
	comments []string
	// glues is true when the last token would continue in a word after it.
	glues bool
}

// add appends what an expression stands for. Between tokens come spaces, where they are needed at
// least one.
func (s *sentence) add(e ebnf.Expression) {
	switch e := e.(type) {
	case ebnf.Alternative:
		s.add(rapid.SampledFrom([]ebnf.Expression(e)).Draw(s.t, "alternative"))
	case ebnf.Sequence:
		for _, part := range e {
			s.add(part)
		}
	case *ebnf.Group:
		s.add(e.Body)
	case *ebnf.Option:
		if rapid.Bool().Draw(s.t, "optional") {
			s.add(e.Body)
		}
	case *ebnf.Repetition:
		for range rapid.IntRange(0, 3).Draw(s.t, "times") {
			s.add(e.Body)
		}
	case *ebnf.Name:
		if isToken(e.String) {
			s.token(s.tokens(e.String).Draw(s.t, e.String))
			return
		}
		s.add(s.productions[e.String].Expr)
	case *ebnf.Token:
		s.token(e.String)
	}
}

func (s *sentence) token(text string) {
	if strings.HasPrefix(text, "//") {
		s.comments = append(s.comments, strings.TrimRightFunc(text, unicode.IsSpace))
	}
	const punctuation = "{}()[],=\r\n"
	blanks := []string{" ", "\t", "  "}
	if !s.glues || text == "" || strings.ContainsAny(text[:1], punctuation) {
		blanks = append(blanks, "", "", "")
	}
	s.text.WriteString(rapid.SampledFrom(blanks).Draw(s.t, "blank") + text)
	s.glues = !strings.ContainsAny(text, punctuation) || strings.ContainsAny(text, `$"`)
}

// tokens generates the texts of a token.
func (s *sentence) tokens(n string) *rapid.Generator[string] {
	if class, ok := s.classes[n]; ok {
		return rapid.SampledFrom(class.samples)
	}
	texts := rapid.Custom(func(t *rapid.T) string { return s.tokenText(t, s.productions[n].Expr) })
	if allowed := s.restrictions[n]; allowed != nil {
		return texts.Filter(allowed)
	}
	return texts
}

func (s *sentence) tokenText(t *rapid.T, e ebnf.Expression) string {
	switch e := e.(type) {
	case ebnf.Alternative:
		return s.tokenText(t, rapid.SampledFrom([]ebnf.Expression(e)).Draw(t, "alternative"))
	case ebnf.Sequence:
		var text strings.Builder
		for _, part := range e {
			text.WriteString(s.tokenText(t, part))
		}
		return text.String()
	case *ebnf.Group:
		return s.tokenText(t, e.Body)
	case *ebnf.Option:
		if rapid.Bool().Draw(t, "optional") {
			return s.tokenText(t, e.Body)
		}
	case *ebnf.Repetition:
		var text strings.Builder
		for range rapid.IntRange(0, 3).Draw(t, "times") {
			text.WriteString(s.tokenText(t, e.Body))
		}
		return text.String()
	case *ebnf.Name:
		return s.tokens(e.String).Draw(t, e.String)
	case *ebnf.Range:
		from, to := ends(e)
		return string(rapid.RuneFrom(nil, &unicode.RangeTable{R16: []unicode.Range16{{Lo: uint16(from), Hi: uint16(to), Stride: 1}}}).Draw(t, "char"))
	case *ebnf.Token:
		return e.String
	}
	return ""
}
