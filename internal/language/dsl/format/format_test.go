// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/format"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
)

// sameTree compares trees except for positions and for the empty lines that the layout puts between
// declarations.
var sameTree = cmp.Options{
	cmpopts.IgnoreTypes(ast.Range{}),
	cmpopts.IgnoreFields(ast.Lead{}, "Blank"),
	cmpopts.IgnoreUnexported(ast.File{}),
	cmpopts.EquateEmpty(),
}

type failer interface {
	Fatalf(format string, args ...any)
}

// checkLaws formats a text and checks that formatting again changes nothing, and that the tree and
// the comments stay the same.
func checkLaws(t failer, src []byte) {
	once, list := format.Source("a.ctrlkit", src)
	if list.HasErrors() {
		if once != nil {
			t.Fatalf("text in spite of mistakes:\n%s", once)
		}
		return
	}
	twice, list := format.Source("a.ctrlkit", once)
	if len(list) > 0 {
		t.Fatalf("mistakes in formatted text: %v\n%s\nof\n%s", list, once, src)
	}
	if !bytes.Equal(once, twice) {
		t.Fatalf("formatting again changes it:\n%s\nof\n%s", cmp.Diff(string(once), string(twice)), src)
	}
	before, _ := parser.Parse("a.ctrlkit", src)
	after, _ := parser.Parse("a.ctrlkit", once)
	if diff := cmp.Diff(before, after, sameTree); diff != "" {
		t.Fatalf("formatting changes the tree:\n%s\nof\n%s", diff, src)
	}
	if diff := cmp.Diff(comments(before), comments(after)); diff != "" {
		t.Fatalf("formatting changes the comments:\n%s\nof\n%s", diff, src)
	}
}

// comments lists all comments of a tree, in order.
func comments(file *ast.File) []string {
	var all []string
	for c := range ast.All[*ast.Comment](file) {
		all = append(all, c.Text)
	}
	return all
}

// TestLaws formats documents in random layouts.
func TestLaws(t *testing.T) {
	g, err := checktest.ReadGrammar()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		src, want := g.Sentence(t)
		file, list := parser.Parse("a.ctrlkit", []byte(src))
		if list.HasErrors() {
			t.Fatalf("mistakes in a document without any: %v\n%s", list, src)
		}
		if diff := cmp.Diff(want, comments(file), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the parser loses comments:\n%s\nof\n%s", diff, src)
		}
		checkLaws(t, []byte(src))
	})
}

// TestArchives formats the file in of every archive; the result is its file out.
func TestArchives(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no archives: ", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{}
			for _, f := range archive.Files {
				files[f.Name] = f.Data
			}
			got, list := format.Source("a.ctrlkit", files["in"])
			if list.HasErrors() {
				t.Fatal(list)
			}
			if diff := cmp.Diff(string(files["out"]), string(got)); diff != "" {
				t.Error(diff)
			}
			checkLaws(t, files["in"])
		})
	}
}

func TestExampleIsFormatted(t *testing.T) {
	got, list := format.Source("cronjob.ctrlkit", checktest.CronJob)
	if len(list) > 0 {
		t.Fatal(list)
	}
	// One comment of the example ends with a space; nothing else differs.
	want := strings.ReplaceAll(string(checktest.CronJob), " \n", "\n")
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestMistakesAreLeftAlone(t *testing.T) {
	src := []byte("decl A for B {\n  state {\n}\n")
	got, list := format.Source("a.ctrlkit", src)
	if got != nil || !list.HasErrors() {
		t.Errorf("got %q and %v", got, list)
	}
}

func TestRepairs(t *testing.T) {
	got, list := format.Source("a.ctrlkit", []byte("\ufeffbind a/v1 b\r\n"))
	if string(got) != "bind a/v1 b\n" || list.HasErrors() || len(list) != 2 {
		t.Errorf("got %q and %v", got, list)
	}
}

// FuzzFormat checks the laws of formatting for whatever parses.
func FuzzFormat(f *testing.F) {
	documents, err := checktest.Documents()
	if err != nil {
		f.Fatal(err)
	}
	for _, src := range documents {
		f.Add([]byte(src))
	}
	f.Add([]byte("decl a for a{} //\n"))
	f.Add([]byte("decl a for a{\naction{ //\na() //\na( //\n\n//\n) //\n} //\n} //\n"))
	f.Fuzz(func(t *testing.T, src []byte) { checkLaws(t, src) })
}
