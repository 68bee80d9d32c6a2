// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/dsl/format"
	"github.com/ctrlkit/ctrlkit/internal/dsl/parser"
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

// A writer makes a document without mistakes in a random layout.
type writer struct {
	strings.Builder
	t        *rapid.T
	comments []string
}

func (w *writer) pick(label string, choices ...string) string {
	return rapid.SampledFrom(choices).Draw(w.t, label)
}

func (w *writer) space() { w.WriteString(w.pick("space", " ", "\t", "  ", " \t ")) }
func (w *writer) gap()   { w.WriteString(w.pick("gap", "", "", " ", "\t")) }
func (w *writer) word() string {
	return rapid.StringMatching(`[A-Za-z0-9_./é-]{0,6}[a-z]`).Filter(func(s string) bool { return !strings.Contains(s, "//") }).Draw(w.t, "word")
}

// comment writes a comment to the end of the line.
func (w *writer) comment() {
	text := "//" + rapid.StringMatching(`[ \t/{}"$=a-z日]{0,8}`).Draw(w.t, "comment")
	w.WriteString(text)
	w.comments = append(w.comments, strings.TrimRight(text, " \t"))
}

// line ends a line, perhaps with a comment, and perhaps adds lines with nothing or with comments on
// them.
func (w *writer) line() {
	if rapid.IntRange(0, 3).Draw(w.t, "trailing") == 0 {
		w.space()
		w.comment()
	}
	w.WriteString(w.pick("newline", "\n", "\r\n"))
	for range rapid.IntRange(0, 3).Draw(w.t, "lines") {
		w.gap()
		if rapid.Bool().Draw(w.t, "commented") {
			w.comment()
		}
		w.WriteString("\n")
	}
	w.gap()
}

func (w *writer) value() {
	w.WriteString("=")
	w.gap()
	parts := rapid.IntRange(1, 3).Draw(w.t, "parts")
	quoted := rapid.Bool().Draw(w.t, "quoted")
	if quoted {
		w.WriteString(`"`)
	}
	for range parts {
		switch {
		case rapid.Bool().Draw(w.t, "reference"):
			w.WriteString(w.pick("ref", "${target.Name}", "${ target.Spec.X }", "${a}"))
		case quoted:
			w.WriteString(w.pick("text", "a b", `\"`, `\\`, `\$`, `\n`, `\u00e9`, `\U0001F600`, `\u0007`, "日", "{}", "//", "=", ""))
		default:
			w.WriteString(w.pick("bare", "a", "a-b", "a/b", "*", "a:b", "é", "."))
		}
	}
	if quoted {
		w.WriteString(`"`)
	}
}

// block writes a block of n items.
func (w *writer) block(item func()) {
	w.gap()
	w.WriteString("{")
	n := rapid.IntRange(0, 3).Draw(w.t, "items")
	if rapid.Bool().Draw(w.t, "one line") && n < 2 {
		w.gap()
		if n == 1 {
			item()
			w.space()
		}
		w.WriteString("}")
		return
	}
	w.line()
	for range n {
		item()
		w.line()
	}
	w.WriteString("}")
}

func (w *writer) selector() {
	w.WriteString(w.pick("selector", "owned", "name", "labels/a", "fields/.x.y", "zzz"))
	if rapid.Bool().Draw(w.t, "has value") {
		w.gap()
		w.value()
	}
}

func (w *writer) state() {
	w.WriteString(w.word())
	w.space()
	w.WriteString(w.pick("list", "", "[]", "[ ]"))
	w.WriteString(w.word())
	w.block(w.selector)
}

func (w *writer) action() {
	w.WriteString(w.word())
	w.gap()
	w.WriteString("(")
	n := rapid.IntRange(0, 4).Draw(w.t, "args")
	lines := rapid.Bool().Draw(w.t, "on lines")
	for i := range n {
		if lines {
			w.line()
		}
		w.WriteString(w.word())
		w.gap()
		if i < n-1 || lines {
			w.WriteString(",")
		}
	}
	if lines {
		w.line()
	}
	w.WriteString(")")
}

func (w *writer) section() {
	w.WriteString(w.pick("section", "state", "action"))
	if strings.HasSuffix(w.String(), "state") {
		w.block(w.state)
	} else {
		w.block(w.action)
	}
}

func (w *writer) document() {
	w.gap()
	if rapid.Bool().Draw(w.t, "begins with a comment") {
		w.comment()
		w.WriteString("\n")
	}
	for range rapid.IntRange(0, 5).Draw(w.t, "statements") {
		switch kind := w.pick("statement", "bind", "alias", "decl"); kind {
		case "decl":
			w.WriteString("decl")
			w.space()
			w.WriteString(w.word())
			w.space()
			w.WriteString("for")
			w.space()
			w.WriteString(w.word())
			w.block(w.section)
		default:
			w.WriteString(kind)
			w.space()
			w.WriteString(w.word())
			w.space()
			w.WriteString(w.word())
		}
		w.line()
	}
}

func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &writer{t: t}
		w.document()
		src := []byte(w.String())
		file, list := parser.Parse("a.ctrlkit", src)
		if list.HasErrors() {
			t.Fatalf("mistakes in a document without any: %v\n%s", list, src)
		}
		if diff := cmp.Diff(w.comments, comments(file), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the parser loses comments:\n%s\nof\n%s", diff, src)
		}
		checkLaws(t, src)
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
	src, err := os.ReadFile("../checktest/testdata/cronjob.ctrlkit")
	if err != nil {
		t.Fatal(err)
	}
	got, list := format.Source("cronjob.ctrlkit", src)
	if len(list) > 0 {
		t.Fatal(list)
	}
	// One comment of the example ends with a space; nothing else differs.
	want := strings.ReplaceAll(string(src), " \n", "\n")
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
	names, err := filepath.Glob("../check/testdata/*/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatal("no corpus: ", err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if file.Name != "want" {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkLaws(t, src) })
}
