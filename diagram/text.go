// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/flow"
)

// Text writes the workflow as a tree, one action to a line:
//
//	Join
//	├── ✓ ListActiveJobsAndUpdateStatus
//	└── If not suspended
//	    └── ✗ RunNextScheduledJob  failed: quota exceeded
//
// Outcomes follow the names of their actions. Line breaks in an error are kept, control characters
// are not.
func Text(w io.Writer, workflow ctrlkit.Node, opts ...Option) error {
	p := &textPrinter{newConfig(workflow, opts)}
	var trees []drawing.Tree
	if p.title != "" {
		trees = append(trees, drawing.Tree{Lines: []string{oneLine(p.title)}})
	}
	trees = append(trees, p.node(workflow, ""))
	if strangers := p.strangers(workflow); len(strangers) > 0 {
		trees = append(trees, drawing.Tree{Lines: []string{"not part of this workflow"}, Children: strangers})
	}
	for _, tree := range trees {
		if err := drawing.WriteTree(w, tree, p.symbols.branches, func(s string) string { return p.paint(faint, s) }); err != nil {
			return err
		}
	}
	return nil
}

type textPrinter struct{ *config }

// node returns n with its children below it. The note stands before what n is.
func (p *textPrinter) node(n outline.Node, note string) drawing.Tree {
	if isAction(n) {
		return drawing.Tree{Lines: p.action(n.Label, note)}
	}
	tree := drawing.Tree{Lines: []string{note + heading(n)}}
	for i, child := range n.Children {
		tree.Children = append(tree.Children, p.node(child, p.note(n, i)))
	}
	return tree
}

// isAction reports whether n is a single box: an action, or a node of a kind that this package does
// not know.
func isAction(n outline.Node) bool { return n.Kind == outline.KindAction }

// heading names a combinator and what is said about it.
func heading(n outline.Node) string {
	if n.Label == "" {
		return n.Kind.String()
	}
	return n.Kind.String() + " " + oneLine(n.Label)
}

// action returns the lines for an action: its name and, if something ran, its outcome.
func (p *textPrinter) action(name, note string) []string {
	if !p.observed {
		return []string{note + oneLine(name)}
	}
	outcome := p.outcomes.of(name)
	lines := strings.Split(drawing.Clean(outcome.String()), "\n")
	color := colorOf(outcome.State)
	symbol := p.symbols.of(outcome.State)
	text := note + p.paint(color, symbol) + " " + oneLine(name)
	if outcome.State != stateDone || outcome.Runs > 1 || outcome.RequeueAfter > 0 {
		text += "  " + p.paint(color, lines[0])
	}
	all := []string{text}
	for _, more := range lines[1:] {
		all = append(all, strings.Repeat(" ", utf8.RuneCountInString(symbol)+1)+p.paint(color, more))
	}
	return all
}

// note returns the role of the i-th child in n, where its position does not show it.
func (p *textPrinter) note(n outline.Node, i int) string {
	switch {
	case n.Kind == outline.KindIfElse && i == 0:
		return "yes: "
	case n.Kind == outline.KindIfElse && i == 1:
		return "no: "
	case n.Kind == outline.KindFinally && i == 1:
		return "always: "
	case n.Kind == outline.KindGraph && len(flow.After(n, i)) > 0:
		names := make([]string, 0, len(flow.After(n, i)))
		for _, c := range flow.After(n, i) {
			names = append(names, oneLine(n.Children[c].String()))
		}
		return "after " + strings.Join(names, " and ") + ": "
	default:
		return ""
	}
}

// strangers are the actions that ran and are not part of the workflow: another workflow ran.
func (p *textPrinter) strangers(workflow outline.Node) []drawing.Tree {
	known := map[string]bool{}
	collectActions(workflow, known)
	var trees []drawing.Tree
	for _, outcome := range p.outcomes {
		if !known[outcome.Action] {
			trees = append(trees, drawing.Tree{Lines: p.action(outcome.Action, "")})
		}
	}
	return trees
}

func collectActions(n outline.Node, names map[string]bool) {
	if isAction(n) {
		names[n.Label] = true
	}
	for _, child := range n.Children {
		collectActions(child, names)
	}
}

func oneLine(text string) string { return strings.ReplaceAll(drawing.Clean(text), "\n", " ") }

// Colors are numbers of the terminal's own palette, which its owner has chosen to be legible.
const faint = "2"

func colorOf(s state) string {
	switch s {
	case stateRunning:
		return "34"
	case stateDone, stateExited:
		return "32"
	case stateRequeued:
		return "35"
	case stateWaiting:
		return "33"
	case stateBlocked, stateNotRun:
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
