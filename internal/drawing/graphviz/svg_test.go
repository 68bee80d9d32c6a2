package graphviz

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/drawing"
)

// texts returns what an SVG document shows, and fails if it is not XML.
func texts(t interface {
	Helper()
	Fatalf(string, ...any)
}, svg []byte) []string {
	t.Helper()
	var all []string
	inText := false
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				all = append(all, string(token))
			}
		}
	}
}

func render(t interface {
	Helper()
	Fatalf(string, ...any)
}, g *drawing.Graph) []byte {
	t.Helper()
	var dot bytes.Buffer
	if err := drawing.DOT(&dot, g); err != nil {
		t.Fatalf("DOT: %v", err)
	}
	svg, err := SVG(context.Background(), dot.Bytes())
	if err != nil {
		t.Fatalf("SVG: %v\n%s", err, dot.Bytes())
	}
	return svg
}

// squash takes white space out: lines are broken at it, and XML does not keep it.
func squash(s string) string { return strings.Join(strings.Fields(s), "") }

// Whatever stands in a label is shown as it stands there: nothing is markup, an escape or an end of the string.
func TestLabelsAreText(t *testing.T) {
	fragment := rapid.SampledFrom([]string{
		`"`, `\`, `\n`, `\N`, `\G`, `<b>`, `</b>`, `&amp;`, `&`, `<br/>`, `>`, `]`, `[`, `{`, `|`, `;`, "'", "`", "-->", "]]>", "<!--", "$1", "é", "名", " ", "a", "%", "#", "//", "\n", "\x00", "\xff", "\u200b",
	})
	label := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(fragment, rapid.String()), 0, 4).Draw(t, "fragments"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		name, detail, edge, frame, title := label.Draw(t, "name"), label.Draw(t, "detail"), label.Draw(t, "edge"), label.Draw(t, "frame"), label.Draw(t, "title")
		g := &drawing.Graph{Title: title}
		a := g.AddNode(&g.Root, drawing.Node{Label: name})
		b := g.AddNode(g.AddCluster(&g.Root, frame), drawing.Node{Label: "end", Details: []string{detail}, Shape: drawing.Head})
		g.Edges = append(g.Edges, drawing.Edge{From: a, To: b, Label: edge})
		svg := render(t, g)
		got := squash(strings.Join(texts(t, svg), ""))
		for what, text := range map[string]string{"name": name, "detail": detail, "edge": edge, "frame": frame} {
			for _, line := range drawing.Lines(text, 44, 4) {
				if want := squash(strings.TrimSuffix(line, " …")); len([]rune(want)) <= 18 && !strings.Contains(got, want) {
					t.Fatalf("%s %q: %q is not in the picture, which shows %q", what, text, want, got)
				}
			}
		}
	})
}

func TestSameDrawingSameBytes(t *testing.T) {
	draw := func() []byte {
		g := &drawing.Graph{Title: "twice"}
		start := g.AddNode(&g.Root, drawing.Node{Shape: drawing.Start})
		for _, name := range []string{"a", "b", "c", "d"} {
			g.Connect(start, g.AddNode(&g.Root, drawing.Node{Label: name, Details: []string{"x"}, Tone: drawing.Good}))
		}
		return render(t, g)
	}
	if diff := cmp.Diff(string(draw()), string(draw())); diff != "" {
		t.Errorf("the second drawing differs from the first (-first +second):\n%s", diff)
	}
}

func TestPictureStandsAlone(t *testing.T) {
	g := &drawing.Graph{Title: `a "title" <b>`}
	g.AddNode(&g.Root, drawing.Node{Label: "x"})
	svg := string(render(t, g))
	for _, unwanted := range []string{"<script", "<!DOCTYPE", "xlink", "href", "@import", "url(", "Generated"} {
		if strings.Contains(svg, unwanted) {
			t.Errorf("the picture contains %q", unwanted)
		}
	}
	for _, wanted := range []string{"<title>a &quot;title&quot; &lt;b&gt;</title>", "prefers-color-scheme:dark", `role="img"`} {
		if !strings.Contains(svg, wanted) {
			t.Errorf("the picture does not contain %q:\n%.600s", wanted, svg)
		}
	}
}

func TestBrokenDOTIsAnError(t *testing.T) {
	if _, err := SVG(context.Background(), []byte("digraph {")); err == nil {
		t.Error("no error for a document that ends early")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := SVG(ctx, []byte("digraph {}")); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that the context is cancelled", err)
	}
}

// The engine's machine code is kept in the user's cache or nowhere, and TMPDIR is as it was.
func TestEngineIsKeptInTheUsersCache(t *testing.T) {
	if os.Getenv("CTRLKIT_TEST_PRINT_TMPDIR") != "" {
		_, _ = os.Stdout.WriteString("TMPDIR is " + os.Getenv("TMPDIR") + ".\n")
		return
	}
	cache := t.TempDir()
	startWithCache(t, cache)
	if kept, err := filepath.Glob(filepath.Join(cache, "ctrlkit", "graphviz", "go-graphviz", "*")); err != nil || len(kept) == 0 {
		t.Errorf("the user's cache holds nothing (%v)", err)
	}
	startWithCache(t, filepath.Join(cache, "no-home", "cache"))
	if _, err := os.Stat(filepath.Join(cache, "no-home")); err == nil {
		t.Error("a home directory that did not exist was made")
	}
}

// startWithCache starts the test again as a process of its own and checks that it leaves nothing where others could write.
func startWithCache(t *testing.T, cache string) {
	t.Helper()
	shared := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "TMPDIR="+shared, "XDG_CACHE_HOME="+cache, "CTRLKIT_TEST_PRINT_TMPDIR=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "TMPDIR is "+shared+".") {
		t.Errorf("child process: %v, TMPDIR was not restored: %s", err, out)
	}
	if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
		t.Errorf("the directory for temporary files holds %v (%v), want nothing", left, err)
	}
}
