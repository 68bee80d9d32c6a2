// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package drawing_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// nasty draws text that some format could take for something else.
func nasty() *rapid.Generator[string] {
	fragment := rapid.SampledFrom([]string{
		`"`, "`", "#quot;", "#", ";", "end", "-->", "--", "%%", "{", "}", "[", "]", "(", ")", "|", "<br/>", "<script>", "&lt;", "&", "1. a", "- a", "\n", "\\", "name", "é", " ",
		"\x1b[31m", "\x00", "\u2028", "\xff", "subgraph", "click n1 href", ":::", "@{", "$$", "\"`**md**`\"", "fa:fa-car", "%%{init: {}}%%",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(fragment, rapid.String()), 0, 5).Draw(t, "fragments"), "")
	})
}

func nastyGraph(t *rapid.T) *drawing.Graph {
	text := nasty()
	g := &drawing.Graph{Title: text.Draw(t, "title")}
	frame := g.AddCluster(&g.Root, text.Draw(t, "frame"))
	a := g.AddNode(frame, drawing.Node{Label: text.Draw(t, "label"), Details: []string{text.Draw(t, "detail")}})
	shape := drawing.Shape(rapid.IntRange(0, int(drawing.Head)).Draw(t, "shape"))
	b := g.AddNode(&g.Root, drawing.Node{Shape: shape, Label: text.Draw(t, "other")})
	g.Edges = append(g.Edges, drawing.Edge{From: a, To: b, Label: text.Draw(t, "edge")})
	return g
}

// mermaidLine is the form of every line that Mermaid writes: labels are quoted and hold nothing that could end the quotation, be a tag
// other than ours, begin a Markdown string, or be an entity that does not end.
var mermaidLine = func() *regexp.Regexp {
	label := `"(?:[^"` + "`" + `<>#&{}\[\]()|;%\\*~$@^\n]|#[0-9]+;|<br/>|</?small>)*"`
	id := `n[0-9]+`
	return regexp.MustCompile(`^(?:` + strings.Join([]string{
		`flowchart (?:TB|LR)`, `---`, `title: "(?:[^"\\\n]|\\["\\])*"`, ` *end`,
		` *subgraph ` + id + `\[` + label + `\]`,
		` *` + id + `(?:\(` + label + `\)|\(\(` + label + `\)\)|\(\(\(` + label + `\)\)\)|\(\[` + label + `\]\)|\[\(` + label + `\)\]|\[\[` + label + `\]\]|\{` + label + `\}):::[a-z]+`,
		` *` + id + ` -\.?->(?:\|` + label + `\|)? ` + id,
		` *classDef [a-z]+ [-a-z0-9#:, ]+`,
	}, "|") + `)$`)
}()

func TestMermaidLabelsAreText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		if err := drawing.Mermaid(&b, nastyGraph(t)); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
			if !mermaidLine.MatchString(line) {
				t.Fatalf("line %q is not of a known form, in:\n%s", line, b.String())
			}
		}
	})
}

func TestLinesKeepTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, width := nasty().Draw(t, "text"), rapid.IntRange(1, 20).Draw(t, "width")
		lines := drawing.Lines(text, width, 1<<30)
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > width && (strings.Contains(line, " ") || n > 72) {
				t.Fatalf("line %q is wider than %d, and no single name", line, width)
			}
		}
		squash := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got, want := squash(strings.Join(lines, "")), squash(drawing.Clean(text)); got != want {
			t.Fatalf("lines hold %q, want %q", got, want)
		}
	})
}

// A name is never split; a word that is longer than any name is, after a separator.
func TestNamesAreWhole(t *testing.T) {
	name := "SyncRisingWaveObjectStorageCredentialsAndServiceAccountOfCompactors"
	got := drawing.Lines("when "+name+" is done", 18, 4)
	if diff := cmp.Diff([]string{"when", name, "is done"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	long := strings.Repeat("image.registry.example.com/", 4)
	if got := drawing.Lines(long, 18, 9); len(got) != 2 || !strings.HasSuffix(got[0], "/") && !strings.HasSuffix(got[0], ".") {
		t.Errorf("a long word is broken into %q", got)
	}
}

func TestLinesAreCutWithAMark(t *testing.T) {
	got := drawing.Lines("one two three four", 5, 2)
	if diff := cmp.Diff([]string{"one", "two …"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCleanIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := drawing.Clean(nasty().Draw(t, "text"))
		if twice := drawing.Clean(once); twice != once {
			t.Fatalf("cleaned twice %q, once %q", twice, once)
		}
		if strings.ContainsAny(once, "\x1b\x00\r") || !utf8.ValidString(once) {
			t.Fatalf("%q still holds what no format can carry", once)
		}
	})
}

func TestWriteTree(t *testing.T) {
	tree := drawing.Tree{Lines: []string{"root"}, Children: []drawing.Tree{
		{Lines: []string{"a", "more of a"}, Children: []drawing.Tree{{Lines: []string{"b"}}}},
		{Lines: []string{"c", "more of c"}},
	}}
	var b strings.Builder
	if err := drawing.WriteTree(&b, tree, drawing.BoxBranches, nil); err != nil {
		t.Fatal(err)
	}
	want := "root\n├── a\n│   │   more of a\n│   └── b\n└── c\n    more of c\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// full is a writer that takes nothing.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	g := &drawing.Graph{}
	g.AddNode(&g.Root, drawing.Node{Label: "x"})
	for name, err := range map[string]error{
		"DOT": drawing.DOT(full{}, g), "Mermaid": drawing.Mermaid(full{}, g),
		"WriteTree": drawing.WriteTree(full{}, drawing.Tree{Lines: []string{"x"}}, drawing.BoxBranches, nil),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s returned %v, want the error of its writer", name, err)
		}
	}
}

// Readers distinguish the tones by their words; for those who see colors, the colors are legible as
// well.
func TestTonesAreLegible(t *testing.T) {
	for _, look := range drawing.Looks() {
		for background, c := range map[string]drawing.Colors{"light": look.Light, "dark": look.Dark} {
			if got := contrast(t, c.Fill, c.Text); got < 4.5 {
				t.Errorf("%s on %s: contrast of the text is %.1f, want at least 4.5", look.Class, background, got)
			}
		}
		if got := contrast(t, look.Light.Fill, look.Light.Line); got < 3 {
			t.Errorf("%s: contrast of the outline is %.1f, want at least 3", look.Class, got)
		}
	}
	for _, page := range []string{"#ffffff", "#0d1117"} {
		if got := contrast(t, page, drawing.LineColor); got < 3.8 {
			t.Errorf("lines on %s: contrast is %.1f, want at least 3.8", page, got)
		}
	}
}
