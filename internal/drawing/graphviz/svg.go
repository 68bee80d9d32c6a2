package graphviz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-graphviz"

	"github.com/ctrlkit/ctrlkit/internal/drawing"
	"github.com/ctrlkit/ctrlkit/internal/drawing/graphviz/cachedir"
)

func init() { cachedir.Restore() }

// engine guards Graphviz, which is one per process and not made for concurrent use.
var engine sync.Mutex

// SVG lays out a document in the DOT language, as [drawing.DOT] writes it, and returns an SVG document that needs no scripts and
// no outside files, follows the colour scheme of the reader's system, and is the same, byte by byte, whenever dot is the same.
func SVG(ctx context.Context, dot []byte) ([]byte, error) {
	svg, err := layOut(ctx, dot)
	if err != nil {
		return nil, fmt.Errorf("laying out the drawing with Graphviz: %w", err)
	}
	return restyle(svg), nil
}

func layOut(ctx context.Context, dot []byte) (svg []byte, err error) {
	engine.Lock()
	defer engine.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	gv, err := graphviz.New(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, gv.Close()) }()
	graph, err := graphviz.ParseBytes(dot)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, graph.Close()) }()
	var buf bytes.Buffer
	if err := gv.Render(ctx, graph, graphviz.SVG, &buf); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

var (
	prologue = regexp.MustCompile(`(?s)^.*?<svg `)
	comment  = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	title    = regexp.MustCompile(`(?s)<title>.*?</title>\n?`)
	boxed    = regexp.MustCompile(`(?s)<g id="node[0-9]+".*?</g>`)
	outline  = regexp.MustCompile(`<path [^>]* d="([^"]*)"`)
	point    = regexp.MustCompile(`(-?[0-9.]+),-?[0-9.]+`)
	aligned  = regexp.MustCompile(`<text text-anchor="start" x="[^"]*"`)
	opening  = regexp.MustCompile(`(?s)<svg width="([0-9]+)pt" height="([0-9]+)pt"\s+viewBox="([^"]*)"[^>]*>\n?`)
)

// restyle takes out what Graphviz says about itself and the names of its nodes, and puts in the colours. Of the titles that
// Graphviz writes only the first, the name of the whole graph, is of use.
func restyle(svg []byte) []byte {
	name := title.Find(svg)
	svg = prologue.ReplaceAll(svg, []byte("<svg "))
	svg = comment.ReplaceAll(svg, nil)
	svg = title.ReplaceAll(svg, nil)
	svg = boxed.ReplaceAllFunc(svg, center)
	return opening.ReplaceAllFunc(svg, func(old []byte) []byte {
		size := opening.FindSubmatch(old)
		return fmt.Appendf(nil, "<svg width=\"%spt\" height=\"%spt\" viewBox=\"%s\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\n%s<style>\n%s</style>\n",
			size[1], size[2], size[3], name, styleSheet())
	})
}

// center puts the lines of a label into the middle of their node. Graphviz has computed where each begins, from the widths of
// letters in a font that the reader's system may not have.
func center(node []byte) []byte {
	found := outline.FindSubmatch(node)
	if found == nil {
		return node
	}
	left, right := math.Inf(1), math.Inf(-1)
	for _, p := range point.FindAllSubmatch(found[1], -1) {
		x, err := strconv.ParseFloat(string(p[1]), 64)
		if err != nil {
			return node
		}
		left, right = min(left, x), max(right, x)
	}
	return aligned.ReplaceAll(node, fmt.Appendf(nil, `<text text-anchor="middle" x="%.2f"`, (left+right)/2))
}

// styleSheet says what the attributes in the document say already, and what changes on a dark background.
func styleSheet() string {
	var b strings.Builder
	b.WriteString("text{font-family:Helvetica,Arial,\"Liberation Sans\",sans-serif}\n")
	for _, look := range drawing.Looks() {
		writeRules(&b, look.Class, look.Light)
	}
	b.WriteString("@media (prefers-color-scheme:dark){\n")
	for _, look := range drawing.Looks() {
		writeRules(&b, look.Class, look.Dark)
	}
	b.WriteString("}\n")
	return b.String()
}

func writeRules(b *strings.Builder, class string, c drawing.Colors) {
	fmt.Fprintf(b, ".%[1]s path,.%[1]s polygon{fill:%[2]s;stroke:%[3]s}.%[1]s text{fill:%[4]s}\n", class, c.Fill, c.Line, c.Text)
}
