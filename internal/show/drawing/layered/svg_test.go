// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// texts returns what an SVG document shows, and fails if it is not XML.
func texts(t failer, svg []byte) []string {
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

func render(t failer, g *drawing.Graph) []byte {
	t.Helper()
	var svg bytes.Buffer
	if err := SVG(&svg, g); err != nil {
		t.Fatalf("SVG: %v", err)
	}
	return svg.Bytes()
}

// squash takes white space out: lines are broken at it, and XML does not keep it.
func squash(s string) string { return strings.Join(strings.Fields(s), "") }

// Whatever stands in a label is shown as it stands there: nothing is markup or the end of an
// attribute.
func TestLabelsAreText(t *testing.T) {
	fragment := rapid.SampledFrom([]string{
		`"`, `\`, `\n`, `\N`, "<b>", "</b>", "&amp;", "&", "<br/>", ">", "]", "'", "`", "-->", "]]>", "<!--", "<![CDATA[", "<?xml", "$1", "é", "名", " ", "a", "%", "%s", "#", "//", "\n", "\x00", "\xff", "\u200b",
	})
	label := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(fragment, rapid.String()), 0, 4).Draw(t, "fragments"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		name, detail, edge, loop, frame, title := label.Draw(t, "name"), label.Draw(t, "detail"), label.Draw(t, "edge"), label.Draw(t, "loop"), label.Draw(t, "frame"), label.Draw(t, "title")
		g := &drawing.Graph{Title: title}
		a := g.AddNode(&g.Root, drawing.Node{Label: name})
		b := g.AddNode(g.AddCluster(&g.Root, frame), drawing.Node{Label: "end", Details: []string{detail}, Shape: drawing.Head})
		g.Edges = append(g.Edges, drawing.Edge{From: a, To: b, Label: edge}, drawing.Edge{From: b, To: b, Label: loop})
		svg := render(t, g)
		got := squash(strings.Join(texts(t, svg), ""))
		for what, lines := range map[string][]string{
			"name": drawing.LabelLines(name), "edge": drawing.LabelLines(edge), "loop": drawing.LabelLines(loop), "frame": drawing.LabelLines(frame),
			"detail": drawing.Lines(detail, 44, 4),
		} {
			for _, line := range lines {
				if want := squash(line); !strings.Contains(got, want) {
					t.Fatalf("%s: %q is not in the picture, which shows %q", what, want, got)
				}
			}
		}
	})
}

func TestPictureStandsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph().Draw(t, "graph")
		g.Title = `a "title" <b>`
		svg := string(render(t, g))
		texts(t, []byte(svg))
		for _, unwanted := range []string{"<script", "<!DOCTYPE", "xlink", "href", "@import", "url(", "NaN", "Inf", "%!"} {
			if strings.Contains(svg, unwanted) {
				t.Fatalf("the picture contains %q:\n%s", unwanted, svg)
			}
		}
		for _, wanted := range []string{"<title>a &quot;title&quot; &lt;b&gt;</title>", "prefers-color-scheme:dark", `role="img"`} {
			if !strings.Contains(svg, wanted) {
				t.Fatalf("the picture does not contain %q:\n%.600s", wanted, svg)
			}
		}
	})
}

func TestSmallestPictures(t *testing.T) {
	one := &drawing.Graph{}
	one.AddNode(&one.Root, drawing.Node{Label: "alone"})
	hollow := &drawing.Graph{}
	hollow.AddCluster(&hollow.Root, "empty")
	for name, test := range map[string]struct {
		g    *drawing.Graph
		want string
	}{
		"nothing": {&drawing.Graph{}, `viewBox="0 0 18 18"`}, "one node": {one, ">alone</text>"}, "an empty frame": {hollow, ">empty</text>"},
	} {
		if svg := string(render(t, test.g)); !strings.Contains(svg, test.want) {
			t.Errorf("%s: want %s in:\n%s", name, test.want, svg)
		}
	}
}

// full is a writer that takes nothing.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	if err := SVG(full{}, &drawing.Graph{}); !errors.Is(err, errFull) {
		t.Errorf("SVG returned %v, want the error of its writer", err)
	}
}
