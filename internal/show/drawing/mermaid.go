// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Mermaid writes g as a flowchart in the language that GitHub and many documentation tools draw.
func Mermaid(w io.Writer, g *Graph) error {
	p := &mermaidPrinter{w: bufio.NewWriter(w)}
	if title := Clean(g.Title); title != "" {
		p.printf("---\ntitle: %s\n---\n", mermaidTitle(title))
	}
	p.printf("flowchart %s\n", mermaidDirection(g.Direction))
	p.cluster(&g.Root, "  ")
	for _, e := range g.Edges {
		p.edge(e)
	}
	p.classes(g)
	return p.w.Flush()
}

func mermaidDirection(d Direction) string {
	if d == LeftRight {
		return "LR"
	}
	return "TB"
}

// A mermaidPrinter leaves errors to the Flush of its writer, which keeps the first one.
type mermaidPrinter struct{ w *bufio.Writer }

func (p *mermaidPrinter) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

func (p *mermaidPrinter) cluster(c *Cluster, indent string) {
	for _, n := range c.Nodes {
		p.printf("%s%s:::%s\n", indent, mermaidNode(n), n.Class())
	}
	for _, inner := range c.Clusters {
		p.printf("%ssubgraph %s[%s]\n", indent, inner.ID, mermaidQuote(LabelLines(inner.Label), nil))
		p.cluster(inner, indent+"  ")
		p.printf("%send\n", indent)
	}
}

func (p *mermaidPrinter) edge(e Edge) {
	arrow := "-->"
	if e.Dashed {
		arrow = "-.->"
	}
	from := e.From
	if e.FromCluster != "" {
		from = e.FromCluster
	}
	if e.Label == "" {
		p.printf("  %s %s %s\n", from, arrow, e.To)
		return
	}
	p.printf("  %s %s|%s| %s\n", from, arrow, mermaidQuote(LabelLines(e.Label), nil), e.To)
}

// classes defines the classes that are used, and no others: Mermaid is often read as text.
func (p *mermaidPrinter) classes(g *Graph) {
	used := map[string]bool{}
	collectClasses(&g.Root, used)
	if used["dot"] {
		p.printf("  classDef dot fill:%[1]s,stroke:%[1]s,color:%[1]s\n", LineColor)
	}
	if used["fork"] {
		p.printf("  classDef fork fill:%[1]s,stroke:%[1]s,color:#ffffff\n", LineColor)
	}
	for _, look := range looks {
		if !used[look.Class] {
			continue
		}
		p.printf("  classDef %s fill:%s,stroke:%s,color:%s", look.Class, look.Light.Fill, look.Light.Line, look.Light.Text)
		if look.Dashed {
			p.printf(",stroke-dasharray:4 3")
		}
		if look.Bold {
			p.printf(",stroke-width:2px")
		}
		p.printf("\n")
	}
}

func collectClasses(c *Cluster, used map[string]bool) {
	for _, n := range c.Nodes {
		used[n.Class()] = true
	}
	for _, inner := range c.Clusters {
		collectClasses(inner, used)
	}
}

func mermaidNode(n Node) string {
	_, details := n.Lines()
	label := mermaidQuote(LabelLines(n.Label), details)
	switch n.Shape {
	case Start, Meet:
		return n.ID + `((" "))`
	case End:
		return n.ID + `(((" ")))`
	case Fork:
		return n.ID + "([" + label + "])"
	case Decision:
		return n.ID + "{" + label + "}"
	case Store:
		return n.ID + "[(" + label + ")]"
	case Head:
		return n.ID + "[[" + label + "]]"
	default:
		return n.ID + "(" + label + ")"
	}
}

// mermaidQuote returns a quoted label. Everything that Mermaid, its Markdown or the HTML of the
// page could take for something else than text is written as a character code.
func mermaidQuote(lines, details []string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, line := range lines {
		if i > 0 {
			b.WriteString("<br/>")
		}
		mermaidEscape(&b, line)
	}
	for _, line := range details {
		b.WriteString("<br/><small>")
		mermaidEscape(&b, line)
		b.WriteString("</small>")
	}
	if b.Len() == 1 {
		b.WriteByte(' ')
	}
	b.WriteByte('"')
	return b.String()
}

func mermaidEscape(b *strings.Builder, s string) {
	var before rune
	for _, r := range s {
		if mermaidPlain(before, r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(b, "#%d;", r)
		}
		before = r
	}
}

// mermaidPlain reports whether r stands for itself after before, which is 0 at the beginning of a
// line. There a dash or a plus, and after a digit a dot, would begin a list.
func mermaidPlain(before, r rune) bool {
	switch {
	case unicode.IsLetter(r), unicode.IsDigit(r), r > unicode.MaxLatin1:
		return true
	case before == 0:
		return false
	case r == '.':
		return !unicode.IsDigit(before)
	default:
		return strings.ContainsRune(" ,:/-_+=?!'", r)
	}
}

// mermaidTitle returns s as a double-quoted scalar of YAML, in which the title is written.
func mermaidTitle(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
}
