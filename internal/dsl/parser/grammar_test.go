// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/dsl/parser"
)

// documentGrammar reads grammar.ebnf and adds what it says in words.
func documentGrammar(t testing.TB) *grammar {
	t.Helper()
	text, err := os.ReadFile("grammar.ebnf")
	if err != nil {
		t.Fatal(err)
	}
	productions, err := readGrammar(string(text))
	if err != nil {
		t.Fatal(err)
	}
	commentChar := func(r rune) bool { return r == '\t' || !unicode.IsControl(r) && r != '\uFEFF' }
	wordChar := func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && !strings.ContainsRune(`{}()[],="$`, r)
	}
	common := []string{"a", "B", "7", "/", ":", ".", "-", "*", "#", "é", "日"}
	return &grammar{
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
	}
}

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

// A sentence is a text that the grammar makes.
type sentence struct {
	*grammar
	t    *rapid.T
	text strings.Builder
	// glues is true when the last token would continue in a word after it.
	glues bool
}

// add appends what an expression stands for. Between tokens come spaces, where they are needed at
// least one.
func (s *sentence) add(e expression) {
	switch e := e.(type) {
	case alternatives:
		s.add(rapid.SampledFrom(e).Draw(s.t, "alternative"))
	case sequence:
		for _, part := range e {
			s.add(part)
		}
	case option:
		if rapid.Bool().Draw(s.t, "optional") {
			s.add(e.of)
		}
	case repetition:
		for range rapid.IntRange(0, 3).Draw(s.t, "times") {
			s.add(e.of)
		}
	case name:
		if e.isToken() {
			s.token(s.tokens(e).Draw(s.t, string(e)))
			return
		}
		s.add(s.productions[string(e)])
	case literal:
		s.token(string(e))
	}
}

func (s *sentence) token(text string) {
	const punctuation = "{}()[],=\r\n"
	blanks := []string{" ", "\t", "  "}
	if !s.glues || text == "" || strings.ContainsAny(text[:1], punctuation) {
		blanks = append(blanks, "", "", "")
	}
	s.text.WriteString(rapid.SampledFrom(blanks).Draw(s.t, "blank") + text)
	s.glues = !strings.ContainsAny(text, punctuation) || strings.ContainsAny(text, `$"`)
}

// tokens generates the texts of a token.
func (s *sentence) tokens(n name) *rapid.Generator[string] {
	if class, ok := s.classes[string(n)]; ok {
		return rapid.SampledFrom(class.samples)
	}
	texts := rapid.Custom(func(t *rapid.T) string { return s.tokenText(t, s.productions[string(n)]) })
	if allowed := s.restrictions[string(n)]; allowed != nil {
		return texts.Filter(allowed)
	}
	return texts
}

func (s *sentence) tokenText(t *rapid.T, e expression) string {
	switch e := e.(type) {
	case alternatives:
		return s.tokenText(t, rapid.SampledFrom(e).Draw(t, "alternative"))
	case sequence:
		var text strings.Builder
		for _, part := range e {
			text.WriteString(s.tokenText(t, part))
		}
		return text.String()
	case option:
		if rapid.Bool().Draw(t, "optional") {
			return s.tokenText(t, e.of)
		}
	case repetition:
		var text strings.Builder
		for range rapid.IntRange(0, 3).Draw(t, "times") {
			text.WriteString(s.tokenText(t, e.of))
		}
		return text.String()
	case name:
		return s.tokens(e).Draw(t, string(e))
	case span:
		return string(rapid.RuneFrom(nil, &unicode.RangeTable{R16: []unicode.Range16{{Lo: uint16(e.from), Hi: uint16(e.to), Stride: 1}}}).Draw(t, "char"))
	case literal:
		return string(e)
	}
	return ""
}

// compare reports a text on which the grammar and the parser disagree. A byte order mark, which is
// left out with a warning, is not in the grammar.
func compare(t interface{ Errorf(string, ...any) }, g *grammar, src string) {
	_, list := parser.Parse("a.ctrlkit", []byte(src))
	accepted := g.accepts("Document", strings.TrimPrefix(src, "\uFEFF"))
	switch parsed := !list.HasErrors(); {
	case parsed && !accepted:
		t.Errorf("the parser accepts what the grammar does not:\n%s\n%q", src, src)
	case accepted && !parsed:
		t.Errorf("the grammar accepts what the parser does not:\n%s\n%q\n%v", src, src, list)
	}
}

// TestGrammarSentences parses sentences of the grammar, which are right, and what becomes of them
// by a small change, which the parser and the grammar have to agree on.
func TestGrammarSentences(t *testing.T) {
	g := documentGrammar(t)
	rapid.Check(t, func(t *rapid.T) {
		s := &sentence{grammar: g, t: t}
		s.add(name("Document"))
		src := s.text.String()
		if _, list := parser.Parse("a.ctrlkit", []byte(src)); list.HasErrors() {
			t.Errorf("mistakes in a sentence of the grammar: %v\n%s", list, src)
		}
		compare(t, g, src)
		from := rapid.IntRange(0, len(src)).Draw(t, "from")
		to := min(len(src), from+rapid.IntRange(0, 3).Draw(t, "length"))
		piece := rapid.SampledFrom([]string{
			"", "\n", " ", "{", "}", "(", ")", "[]", "[", "]", ",", "=", `"`, "//", "${", "$", "\r", "#",
			"\\", `\n`, `\ud800`, "a", "decl", "state", "é", "\u00a0", "\xff",
		}).Draw(t, "piece")
		compare(t, g, src[:from]+piece+src[to:])
	})
}

// documents returns every document of the repository and its tests by a name, right and wrong ones.
func documents(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, root := range []string{"../..", "../../../examples"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			switch filepath.Ext(path) {
			case ".ctrlkit":
				all[path] = string(text)
			case ".txtar":
				for _, file := range txtar.Parse(text).Files {
					if filepath.Ext(file.Name) == ".ctrlkit" || file.Name == "in" || file.Name == "out" {
						all[path+":"+file.Name] = unquoted(file.Data)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range diag.Codes() {
		all[string(e.Code)] = e.Example
	}
	all["escapes"] = `decl A for B { state { a B { name="\" \\ \$ \n \t \u00e9 \U0001F600" } } }`
	return all
}

// unquoted returns the document in an archive: a line that begins with "quoted " is one as a Go
// string.
func unquoted(data []byte) string {
	if text, ok := strings.CutPrefix(string(data), "quoted "); ok {
		if s, err := strconv.Unquote(strings.TrimSpace(text)); err == nil {
			return s
		}
	}
	return string(data)
}

// TestGrammarOfDocuments compares the grammar with the parser by all documents that there are: the
// examples and golden documents are right, those that the diagnostics are tested by are mostly not.
func TestGrammarOfDocuments(t *testing.T) {
	g := documentGrammar(t)
	right, wrong := 0, 0
	for name, src := range documents(t) {
		t.Run(name, func(t *testing.T) {
			compare(t, g, src)
			_, list := parser.Parse(name, []byte(src))
			if list.HasErrors() {
				wrong++
			} else {
				right++
			}
			code, ok := diag.Explain(diag.Code(name))
			if ok && strings.HasPrefix(name, "CK00") && code.Severity == diag.Error && !list.HasErrors() {
				t.Errorf("the example of a mistake in the form parses:\n%s", src)
			}
		})
	}
	if right < 100 || wrong < 30 {
		t.Errorf("%d documents are right and %d wrong: were all of them found?", right, wrong)
	}
}

// TestGrammarOfWords checks the part of the grammar that the checker enforces: the words of
// documents without a mistake have the forms that it gives.
func TestGrammarOfWords(t *testing.T) {
	g := documentGrammar(t)
	checked := 0
	word := func(name, production string, w ast.Word) {
		if checked++; !g.accepts(production, w.Text) {
			t.Errorf("%s: %q is no %s", name, w.Text, production)
		}
	}
	for doc, src := range documents(t) {
		if !strings.Contains(doc, "testdata/right") && !strings.HasSuffix(doc, ".ctrlkit") || strings.Contains(doc, "testdata/wrong") {
			continue
		}
		file, list := parser.Parse(doc, []byte(src))
		if list.HasErrors() {
			continue
		}
		for n := range ast.All[ast.Node](file) {
			switch n := n.(type) {
			case *ast.Bind:
				word(doc, "group_version", n.GroupVersion)
			case *ast.Alias:
				word(doc, "name", n.Name)
				word(doc, "kind", n.Kind)
			case *ast.Decl:
				word(doc, "name", n.Name)
				word(doc, "kind", n.Kind)
			case *ast.State:
				word(doc, "name", n.Name)
				word(doc, "kind", n.Kind)
			case *ast.Action:
				word(doc, "name", n.Name)
			case *ast.Selector:
				word(doc, "key", n.Key)
			}
		}
	}
	if checked < 300 {
		t.Errorf("%d words were checked", checked)
	}
	for production, text := range map[string]string{
		"name": "a-b", "kind": "a/b/c/d", "group_version": "a/b/c", "key": "labels/", "label_key": "-app", "field_path": "spec",
	} {
		if g.accepts(production, text) {
			t.Errorf("%q is a %s", text, production)
		}
	}
}

// TestGrammarIsUsed looks for productions that nothing refers to, and for names without a
// production.
func TestGrammarIsUsed(t *testing.T) {
	g := documentGrammar(t)
	text, err := os.ReadFile("grammar.ebnf")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile("(?s)//[^\n]*\n|/\\*.*?\\*/|\"[^\"]*\"|`[^`]*`").ReplaceAll(text, []byte("\n"))
	used := map[string]int{}
	for _, n := range regexp.MustCompile(`\w+`).FindAllString(string(text), -1) {
		used[n]++
		if g.productions[n] == nil {
			t.Errorf("%s has no production", n)
		}
	}
	roots := map[string]bool{"Document": true, "kind": true, "key": true}
	for n, times := range used {
		if times < 2 && !roots[n] {
			t.Errorf("nothing refers to %s", n)
		}
	}
}

// TestGrammarInManual compares the grammar with its copy in the manual.
func TestGrammarInManual(t *testing.T) {
	want, err := os.ReadFile("grammar.ebnf")
	if err != nil {
		t.Fatal(err)
	}
	manual, err := os.ReadFile("../../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(manual, []byte("```ebnf\n"))
	got, _, _ := bytes.Cut(after, []byte("```\n"))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/language.md has another grammar: copy internal/dsl/parser/grammar.ebnf to it (-want +got):\n%s", diff)
	}
}

// FuzzGrammar looks for texts on which the grammar and the parser disagree.
func FuzzGrammar(f *testing.F) {
	for _, src := range documents(f) {
		f.Add([]byte(src))
	}
	g := documentGrammar(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) < 2000 {
			compare(t, g, string(src))
		}
	})
}
