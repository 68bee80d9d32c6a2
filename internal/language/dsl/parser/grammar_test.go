// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
)

func readGrammar(t testing.TB) *checktest.Grammar {
	t.Helper()
	g, err := checktest.ReadGrammar()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func documents(t testing.TB) map[string]string {
	t.Helper()
	all, err := checktest.Documents()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// compare reports a text on which the grammar and the parser disagree. A byte order mark, which is
// left out with a warning, is not in the grammar.
func compare(t interface{ Errorf(string, ...any) }, g *checktest.Grammar, src string) {
	_, list := parser.Parse("a.ctrlkit", []byte(src))
	accepted := g.Accepts("Document", strings.TrimPrefix(src, "\uFEFF"))
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
	g := readGrammar(t)
	rapid.Check(t, func(t *rapid.T) {
		src, _ := g.Sentence(t)
		if _, list := parser.Parse("a.ctrlkit", []byte(src)); list.HasErrors() {
			t.Errorf("mistakes in a sentence of the grammar: %v\n%s", list, src)
		}
		compare(t, g, src)
		from := rapid.IntRange(0, len(src)).Draw(t, "from")
		to := min(len(src), from+rapid.IntRange(0, 3).Draw(t, "length"))
		piece := rapid.SampledFrom([]string{
			"", "\n", " ", "{", "}", "(", ")", "[]", "[", "]", ",", "=", `"`, "//", "${", "$", "\r", "#",
			"\\", `\n`, `\ud800`, "a", "decl", "state", "é", "\u00a0", "\u202e", "\u2066", "\u206a", "\xff", " in (a", "!", " notin (",
		}).Draw(t, "piece")
		compare(t, g, src[:from]+piece+src[to:])
	})
}

// TestGrammarOfDocuments compares the grammar with the parser by all documents that there are: the
// examples and golden documents are right, those that the diagnostics are tested by are mostly not.
func TestGrammarOfDocuments(t *testing.T) {
	g := readGrammar(t)
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
	g := readGrammar(t)
	checked := 0
	word := func(name, production string, w ast.Word) {
		if checked++; !g.Accepts(production, w.Text) {
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
		if g.Accepts(production, text) {
			t.Errorf("%q is a %s", text, production)
		}
	}
}

// TestGrammarInManual compares the grammar with its copy in the manual.
func TestGrammarInManual(t *testing.T) {
	manual, err := os.ReadFile("../../../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(manual, []byte("```ebnf\n"))
	got, _, _ := bytes.Cut(after, []byte("```\n"))
	if diff := cmp.Diff(readGrammar(t).Text, string(got)); diff != "" {
		t.Errorf("docs/language.md has another grammar: copy internal/language/dsl/parser/grammar.ebnf to it (-want +got):\n%s", diff)
	}
}

// FuzzGrammar looks for texts on which the grammar and the parser disagree.
func FuzzGrammar(f *testing.F) {
	for _, src := range documents(f) {
		f.Add([]byte(src))
	}
	g := readGrammar(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) < 2000 {
			compare(t, g, string(src))
		}
	})
}
