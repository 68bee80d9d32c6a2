package diagram

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/drawing"
)

// Text writes the workflow as a tree, one action to a line:
//
//	Join
//	├── ✓ ListActiveJobsAndUpdateStatus
//	└── If not suspended
//	    └── ✗ RunNextScheduledJob  failed: quota exceeded
//
// Outcomes follow the names of their actions. Line breaks in an error are kept, control characters are not.
func Text(w io.Writer, workflow ctrlkit.Node, opts ...Option) error {
	p := &textPrinter{config: newConfig(opts), w: bufio.NewWriter(w)}
	if p.title != "" {
		p.line("", drawing.Clean(p.title))
	}
	p.node(workflow, "", "", "")
	p.strangers(workflow)
	return p.w.Flush()
}

// A textPrinter leaves errors to the Flush of its writer, which keeps the first one.
type textPrinter struct {
	*config
	w *bufio.Writer
}

func (p *textPrinter) line(prefix, text string) {
	p.w.WriteString(strings.TrimRight(p.paint(faint, prefix)+text, " "))
	p.w.WriteByte('\n')
}

// node writes n behind prefix and its children below it, their lines behind rest. The note stands before what n is.
func (p *textPrinter) node(n ctrlkit.Node, prefix, rest, note string) {
	if isAction(n) {
		p.action(n.Label, prefix, rest, note)
		return
	}
	p.line(prefix, note+heading(n))
	for i, child := range n.Children {
		branch, below := p.symbols.branch, p.symbols.run
		if i == len(n.Children)-1 {
			branch, below = p.symbols.last, p.symbols.skip
		}
		p.node(child, rest+branch, rest+below, p.note(n, i))
	}
}

// isAction reports whether n is a single box: an action, or a node of a kind that came after this package.
func isAction(n ctrlkit.Node) bool { return n.Kind == ctrlkit.KindAction }

// heading names a combinator and what is said about it.
func heading(n ctrlkit.Node) string {
	if n.Label == "" {
		return n.Kind.String()
	}
	return n.Kind.String() + " " + oneLine(n.Label)
}

func (p *textPrinter) action(name, prefix, rest, note string) {
	name = oneLine(name)
	if !p.observed {
		p.line(prefix, note+name)
		return
	}
	outcome := p.outcomes.Of(name)
	lines := strings.Split(drawing.Clean(outcome.String()), "\n")
	color := colorOf(outcome.State)
	text := note + p.paint(color, p.symbols.of(outcome.State)) + " " + name
	if outcome.State != Done || outcome.Runs > 1 || outcome.RequeueAfter > 0 {
		text += "  " + p.paint(color, lines[0])
	}
	p.line(prefix, text)
	for _, more := range lines[1:] {
		p.line(rest, strings.Repeat(" ", len("✓ "))+p.paint(color, more))
	}
}

// note says what the i-th child is to n where its place does not say it.
func (p *textPrinter) note(n ctrlkit.Node, i int) string {
	switch {
	case n.Kind == ctrlkit.KindIfElse && i == 0:
		return "yes: "
	case n.Kind == ctrlkit.KindIfElse && i == 1:
		return "no: "
	case n.Kind == ctrlkit.KindFinally && i == 1:
		return "always: "
	case n.Kind == ctrlkit.KindGraph && len(after(n, i)) > 0:
		names := make([]string, 0, len(after(n, i)))
		for _, c := range after(n, i) {
			names = append(names, oneLine(n.Children[c].String()))
		}
		return "after " + strings.Join(names, " and ") + ": "
	default:
		return ""
	}
}

// after returns the children that the i-th child of a graph comes after. A node may have been made by hand: what makes no
// sense is left out.
func after(n ctrlkit.Node, i int) []int {
	if i >= len(n.After) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.After[i]), func(c int) bool { return c < 0 || c >= len(n.Children) || c == i })
}

// strangers lists the actions that ran and do not occur in the workflow: it was another one that ran.
func (p *textPrinter) strangers(workflow ctrlkit.Node) {
	known := map[string]bool{}
	collectActions(workflow, known)
	first := true
	for _, outcome := range p.outcomes {
		if known[outcome.Action] {
			continue
		}
		if first {
			p.line("", "not part of this workflow:")
			first = false
		}
		p.action(outcome.Action, p.symbols.skip, p.symbols.skip, "")
	}
}

func collectActions(n ctrlkit.Node, names map[string]bool) {
	if isAction(n) {
		names[n.Label] = true
	}
	for _, child := range n.Children {
		collectActions(child, names)
	}
}

func oneLine(text string) string { return strings.ReplaceAll(drawing.Clean(text), "\n", " ") }

// Colours are numbers of the terminal's own palette, which its owner has chosen to be legible.
const faint = "2"

func colorOf(s State) string {
	switch s {
	case Running:
		return "34"
	case Done, Exited:
		return "32"
	case Requeued:
		return "35"
	case Waiting:
		return "33"
	case Blocked, NotRun:
		return faint
	default:
		return "31"
	}
}

func (p *textPrinter) paint(color, text string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
