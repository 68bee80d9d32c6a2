// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// SVG writes g as an SVG document that needs no scripts and no other files, and follows the color
// scheme of the reader's system. It returns an error if an edge names a node or a cluster that the
// drawing does not have, and those of w.
func SVG(w io.Writer, g *drawing.Graph) error { return write(w, g, styleSheet()) }

// Fragment writes g as SVG for a page with a style sheet of its own, which has a rule for the class
// of each tone. The attributes in it are the colors for a light background.
func Fragment(w io.Writer, g *drawing.Graph) error { return write(w, g, "") }

func write(w io.Writer, g *drawing.Graph, styles string) error {
	l, err := lay(g)
	if err != nil {
		return err
	}
	p := &printer{layout: l, w: bufio.NewWriter(w)}
	p.document(styles)
	return p.w.Flush()
}

// A printer leaves errors to the Flush of its writer, which keeps the first one.
type printer struct {
	*layout
	w *bufio.Writer
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

func (p *printer) document(styles string) {
	width, height := p.point(p.size)
	unit := "pt"
	if styles == "" { // the letters are as large as those of the page
		unit = ""
	}
	p.printf("<svg width=\"%[1]s%[3]s\" height=\"%[2]s%[3]s\" viewBox=\"0 0 %[1]s %[2]s\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\n",
		number(math.Ceil(width)), number(math.Ceil(height)), unit)
	p.printf("<title>%s</title>\n", escape(strings.Join(strings.Fields(drawing.Clean(p.title())), " ")))
	if styles != "" {
		p.printf("<style>\n%s</style>\n", styles)
	}
	for _, f := range p.frames {
		p.frame(f)
	}
	for _, e := range p.edges {
		p.edge(e)
	}
	for _, c := range p.cells {
		if c.loop != nil {
			p.loop(c)
		}
	}
	for _, c := range p.cells {
		if c.node != nil {
			p.node(c)
		}
	}
	p.printf("</svg>\n")
}

func (p *printer) title() string {
	if p.graph.Title == "" {
		return "Diagram"
	}
	return p.graph.Title
}

// point returns the coordinates of a place in the picture.
func (p *printer) point(at place) (x, y float64) {
	if p.graph.Direction == drawing.LeftRight {
		return at.along, at.across
	}
	return at.across, at.along
}

// xy writes a place as a path has it.
func (p *printer) xy(at place) string {
	x, y := p.point(at)
	return number(x) + "," + number(y)
}

// number writes a coordinate with at most two digits after the point.
func number(x float64) string {
	return strconv.FormatFloat(math.Round(x*100)/100+0, 'f', -1, 64)
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(text)
}

func (p *printer) frame(f *frame) {
	x, y := p.point(f.from)
	right, bottom := p.point(f.to)
	dashed := ""
	if f.cluster.Dashed {
		dashed = ` stroke-dasharray="5,2"`
	}
	p.printf("<g class=\"frame\">\n<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"%d\" fill=\"none\" stroke=\"%s\"%s/>\n",
		number(x), number(y), number(right-x), number(bottom-y), corner, drawing.LineColor, dashed)
	for i, line := range f.label {
		p.text("start", x+padding, y+6+float64((i+1)*smallHeight)-4, smallSize, drawing.LineColor, line)
	}
	p.printf("</g>\n")
}

// text writes one line; y is where its letters stand on.
func (p *printer) text(anchor string, x, y float64, size int, color, line string) {
	if line == "" {
		return
	}
	p.printf("<text text-anchor=\"%s\" x=\"%s\" y=\"%s\" font-family=\"Helvetica,Arial,sans-serif\" font-size=\"%d\" fill=\"%s\">%s</text>\n",
		anchor, number(x), number(y), size, color, escape(line))
}

func (p *printer) edge(e *edge) {
	way := p.route(e)
	if len(way) == 0 {
		return
	}
	tip, before := way[len(way)-1].to, way[len(way)-1].from
	if e.reversed {
		tip, before = way[0].from, way[0].to
	}
	p.printf("<g class=\"edge\">\n<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\"%s d=\"%s\"/>\n",
		drawing.LineColor, dash(e.Dashed), p.path(way, e.reversed))
	direction := 1.0
	if before.along > tip.along {
		direction = -1
	}
	back := tip.along - direction*arrowLength
	p.arrow(tip, place{tip.across - arrowLength/2.8, back}, place{tip.across + arrowLength/2.8, back})
	p.edgeLabel(e)
	p.printf("</g>\n")
}

func dash(dashed bool) string {
	if dashed {
		return ` stroke-dasharray="5,2"`
	}
	return ""
}

func (p *printer) arrow(tip, left, right place) {
	p.printf("<polygon fill=\"%[1]s\" stroke=\"%[1]s\" points=\"%s %s %s\"/>\n", drawing.LineColor, p.xy(tip), p.xy(left), p.xy(right))
}

// path writes the way of an edge, shorter by the better part of the head of its arrow. A turn to
// the side begins and ends along the layers.
func (p *printer) path(way []segment, reversed bool) string {
	const under = arrowLength / 2
	if reversed {
		way[0].from.along += under
	} else {
		way[len(way)-1].to.along -= under
	}
	var b strings.Builder
	b.WriteString("M" + p.xy(way[0].from))
	for i, s := range way {
		switch {
		case s.from.across != s.to.across:
			bend := (s.to.along - s.from.along) / 2
			b.WriteString("C" + p.xy(place{s.from.across, s.from.along + bend}) + " " + p.xy(place{s.to.across, s.to.along - bend}) + " " + p.xy(s.to))
		case i+1 == len(way) || way[i+1].from.across != way[i+1].to.across:
			b.WriteString("L" + p.xy(s.to))
		}
	}
	return b.String()
}

// edgeLabel writes the label of an edge to its right, or above it.
func (p *printer) edgeLabel(e *edge) {
	if e.labelCell == nil {
		return
	}
	c := e.labelCell
	if p.graph.Direction == drawing.LeftRight {
		p.lines("start", p.center(c)-float64(e.labelWidth)/2, c.axis-float64(len(e.label)*smallHeight)/2-1, e.label)
		return
	}
	p.lines("start", c.axis+6, p.center(c), e.label)
}

// lines writes lines of small letters whose middle is at y.
func (p *printer) lines(anchor string, x, y float64, lines []string) {
	y -= float64(len(lines)*smallHeight) / 2
	for i, line := range lines {
		p.text(anchor, x, y+float64((i+1)*smallHeight)-4, smallSize, drawing.LineColor, line)
	}
}

func (p *printer) loop(c *cell) {
	curve := p.loopPlaces(c)
	tip := curve[3]
	p.printf("<g class=\"edge\">\n<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\"%s d=\"M%sC%s %s %s\"/>\n", drawing.LineColor,
		dash(c.loop.Dashed), p.xy(curve[0]), p.xy(curve[1]), p.xy(curve[2]), p.xy(place{tip.across + arrowLength/2, tip.along}))
	p.arrow(tip, place{tip.across + arrowLength, tip.along - arrowLength/2.8}, place{tip.across + arrowLength, tip.along + arrowLength/2.8})
	beside := c.axis + float64(c.half) + loopWidth - 2
	if p.graph.Direction == drawing.LeftRight {
		p.lines("middle", p.center(c), beside+float64(len(c.loop.label)*smallHeight)/2, c.loop.label)
	} else {
		p.lines("start", beside, p.center(c), c.loop.label)
	}
	p.printf("</g>\n")
}

func (p *printer) node(c *cell) {
	x, y := p.point(place{c.axis, p.center(c)})
	width, height := p.point(place{float64(2 * c.half), float64(c.tall)})
	p.printf("<g class=\"node %s\">\n", c.node.Class())
	look := c.node.Tone.Look()
	s := shape{x: x, y: y, width: width, height: height, colors: look.Light, stroke: "1.2"}
	if look.Bold {
		s.stroke = "2"
	}
	s.dash = dash(look.Dashed)
	p.outline(c.node.Shape, s)
	p.nodeText(c, x, y, s.colors.Text)
	p.printf("</g>\n")
}

// A shape is what the outline of a node is drawn from.
type shape struct {
	x, y, width, height float64 // of the middle
	colors              drawing.Colors
	stroke, dash        string
}

func (s shape) paint() string {
	return fmt.Sprintf(`fill="%s" stroke="%s" stroke-width="%s"%s`, s.colors.Fill, s.colors.Line, s.stroke, s.dash)
}

func (p *printer) outline(kind drawing.Shape, s shape) {
	left, right, top, bottom := s.x-s.width/2, s.x+s.width/2, s.y-s.height/2, s.y+s.height/2
	switch kind {
	case drawing.Start:
		p.dot(s, startRadius)
	case drawing.Meet:
		p.dot(s, meetRadius)
	case drawing.End:
		p.dot(s, endCore)
		p.printf("<circle cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\"/>\n",
			number(s.x), number(s.y), number(endRadius-0.6), drawing.LineColor)
	case drawing.Fork:
		p.printf("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"6\" fill=\"%s\"/>\n",
			number(left), number(top), number(s.width), number(s.height), drawing.LineColor)
	case drawing.Decision:
		p.printf("<polygon class=\"shape\" %s points=\"%s,%s %s,%s %s,%s %s,%s\"/>\n", s.paint(),
			number(s.x), number(top), number(right), number(s.y), number(s.x), number(bottom), number(left), number(s.y))
	case drawing.Store:
		p.printf("<path class=\"shape\" %s d=\"M%[2]s,%[3]sV%[4]sA%[5]s,%[6]d 0 0 0 %[7]s,%[4]sV%[3]sA%[5]s,%[6]d 0 0 0 %[2]s,%[3]sA%[5]s,%[6]d 0 0 0 %[7]s,%[3]s\"/>\n",
			s.paint(), number(left), number(top+rim), number(bottom-rim), number(s.width/2), rim, number(right))
	case drawing.Head:
		p.box(s, 0)
		p.box(s, 4)
	default:
		p.box(s, 0)
	}
}

func (p *printer) dot(s shape, radius float64) {
	p.printf("<circle cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"%s\"/>\n", number(s.x), number(s.y), number(radius), drawing.LineColor)
}

// box draws the outline of a box, or one further inside.
func (p *printer) box(s shape, inside float64) {
	p.printf("<rect class=\"shape\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"%s\" %s/>\n", number(s.x-s.width/2+inside), number(s.y-s.height/2+inside),
		number(s.width-2*inside), number(s.height-2*inside), number(corner-inside), s.paint())
}

// nodeText writes the label and the details of a node around its middle.
func (p *printer) nodeText(c *cell, x, y float64, color string) {
	y -= float64(c.text.height()) / 2
	switch c.node.Shape {
	case drawing.Fork:
		color = "#ffffff"
	case drawing.Store:
		y += rim / 2
	}
	for _, line := range c.text.label {
		y += float64(lineHeight(c.text.size))
		p.text("middle", x, y-float64(lineHeight(c.text.size))*0.26, c.text.size, color, line)
	}
	for _, line := range c.text.details {
		y += detailHeight
		p.text("middle", x, y-detailHeight*0.28, detailSize, color, line)
	}
}

// styleSheet says what the attributes in the document say already, and what changes on a dark
// background.
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
	fmt.Fprintf(b, ".%[1]s .shape{fill:%[2]s;stroke:%[3]s}.%[1]s text{fill:%[4]s}\n", class, c.Fill, c.Line, c.Text)
}
