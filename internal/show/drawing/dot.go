// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"
)

// DOT writes g in Graphviz' language. Every node has a class, which Graphviz passes on to the SVG
// that it makes.
func DOT(w io.Writer, g *Graph) error {
	p := &dotPrinter{w: bufio.NewWriter(w), forks: map[string]bool{}}
	p.printf("digraph %s {\n", dotQuote(Clean(cmp.Or(g.Title, "Diagram"))))
	p.printf("  graph [rankdir=%s, compound=true, bgcolor=transparent, fontname=Helvetica, nodesep=0.4, ranksep=0.42, pad=0.12];\n", rankdir(g.Direction))
	p.printf("  node [fontname=Helvetica, fontsize=13, margin=\"0.26,0.1\", penwidth=1.2];\n")
	p.printf("  edge [fontname=Helvetica, fontsize=11, color=%q, fontcolor=%q, arrowsize=0.7, penwidth=1.2, labeldistance=1.9, labelangle=32];\n", LineColor, LineColor)
	p.cluster(&g.Root, "  ")
	for _, e := range g.Edges {
		p.edge(e)
	}
	p.printf("}\n")
	return p.w.Flush()
}

func rankdir(d Direction) string {
	if d == LeftRight {
		return "LR"
	}
	return "TB"
}

// A dotPrinter leaves errors to the Flush of its writer, which keeps the first one.
type dotPrinter struct {
	w *bufio.Writer
	// forks are the IDs of the forks. What follows a fork is kept close to it, so that branches
	// begin on one line.
	forks map[string]bool
}

func (p *dotPrinter) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

func (p *dotPrinter) cluster(c *Cluster, indent string) {
	for _, n := range c.Nodes {
		p.forks[n.ID] = n.Shape == Fork
		p.printf("%s%s [%s];\n", indent, n.ID, strings.Join(nodeAttributes(n), ", "))
	}
	for _, inner := range c.Clusters {
		style := "rounded"
		if inner.Dashed {
			style = "rounded,dashed"
		}
		p.printf("%ssubgraph cluster_%s {\n", indent, inner.ID)
		p.printf("%s  label=%s; labeljust=l; style=%q; color=%q; fontcolor=%q; fontsize=11; margin=12;\n",
			indent, dotText(LabelLines(inner.Label)), style, LineColor, LineColor)
		p.cluster(inner, indent+"  ")
		p.printf("%s}\n", indent)
	}
}

func (p *dotPrinter) edge(e Edge) {
	var attributes []string
	if e.Label != "" {
		attributes = append(attributes, "taillabel="+dotText(spaced(LabelLines(e.Label))))
	}
	if e.Dashed {
		attributes = append(attributes, "style=dashed")
	}
	if e.FromCluster != "" {
		attributes = append(attributes, "ltail=cluster_"+e.FromCluster, "minlen=2", "labeldistance=3", "labelangle=48")
	}
	if p.forks[e.From] {
		attributes = append(attributes, "weight=2")
	}
	if len(attributes) == 0 {
		p.printf("  %s -> %s;\n", e.From, e.To)
		return
	}
	p.printf("  %s -> %s [%s];\n", e.From, e.To, strings.Join(attributes, ", "))
}

// spaced puts room between the letters of an edge's label and the edge.
func spaced(lines []string) []string {
	for i := range lines {
		lines[i] = "\u00a0" + lines[i] + "\u00a0"
	}
	return lines
}

func nodeAttributes(n Node) []string {
	look := n.Tone.Look()
	colors := look.Light
	attributes := []string{"class=" + n.Class()}
	switch n.Shape {
	case Start:
		return append(attributes, "shape=circle", "style=filled", "width=0.16", "fixedsize=true", `label=" "`,
			fmt.Sprintf("fillcolor=%q", LineColor), fmt.Sprintf("color=%q", LineColor))
	case End:
		return append(attributes, "shape=doublecircle", "style=filled", "width=0.11", "fixedsize=true", `label=" "`,
			fmt.Sprintf("fillcolor=%q", LineColor), fmt.Sprintf("color=%q", LineColor))
	case Meet:
		return append(attributes, "shape=circle", "style=filled", "width=0.09", "fixedsize=true", `label=" "`,
			fmt.Sprintf("fillcolor=%q", LineColor), fmt.Sprintf("color=%q", LineColor))
	case Fork:
		return append(attributes, "shape=box", `style="rounded,filled"`, `margin="0.12,0.03"`, "height=0.24", "fontsize=10", "ordering=out",
			fmt.Sprintf("fillcolor=%q", LineColor), fmt.Sprintf("color=%q", LineColor), `fontcolor="#ffffff"`,
			"label="+dotText(LabelLines(n.Label)))
	}
	style := "filled"
	switch n.Shape {
	case Decision:
		attributes = append(attributes, "shape=diamond", "height=0.6", "ordering=out", `margin="0.02,0.02"`, "fontsize=12")
	case Store:
		attributes = append(attributes, "shape=cylinder", `margin="0.34,0.1"`)
	case Head:
		attributes = append(attributes, "shape=box", "peripheries=2")
		style = "rounded,filled"
	default:
		attributes = append(attributes, "shape=box")
		style = "rounded,filled"
	}
	if look.Dashed {
		style += ",dashed"
	}
	if look.Bold {
		attributes = append(attributes, "penwidth=2")
	}
	return append(attributes, fmt.Sprintf("style=%q", style),
		fmt.Sprintf("fillcolor=%q", colors.Fill), fmt.Sprintf("color=%q", colors.Line), fmt.Sprintf("fontcolor=%q", colors.Text),
		"label="+dotLabel(n.Lines()))
}

// dotLabel returns the label of a node: HTML-like when it has details, which are set in smaller
// letters.
func dotLabel(lines, details []string) string {
	if len(details) == 0 {
		return dotText(lines)
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(dotMarkup(line) + "<br/>")
	}
	for i, line := range details {
		if i > 0 {
			b.WriteString("<br/>")
		}
		b.WriteString(`<font point-size="11">` + dotMarkup(line) + ` </font>`)
	}
	return "<" + b.String() + ">"
}

// dotMarkup writes text for an HTML-like label, in which a backslash still begins an escape such as
// \N, the name of the node.
func dotMarkup(text string) string {
	return strings.ReplaceAll(html.EscapeString(text), `\`, `\\`)
}

// dotText returns lines as a quoted label. A label with nothing in it is a space, because an empty
// one would stand for the name of the node.
func dotText(lines []string) string {
	text := strings.Join(lines, "\n")
	if strings.TrimSpace(text) == "" {
		text = " "
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;", "\n", `\n`).Replace(text) + `"`
}

// dotQuote returns s as a quoted string of the DOT language, where only the quote itself has to be
// escaped; a backslash would escape a quote that follows it, so that it is written as two.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}
