// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram

import (
	"io"
	"strconv"

	"github.com/ctrlkit/ctrlkit/internal/drawing"
	"github.com/ctrlkit/ctrlkit/internal/drawing/layered"
	"github.com/ctrlkit/ctrlkit/outline"
)

// DOT writes the workflow in the language of Graphviz.
func DOT(w io.Writer, workflow outline.Node, opts ...Option) error {
	return drawing.DOT(w, newConfig(workflow, opts).draw(workflow))
}

// Mermaid writes the workflow as a Mermaid flowchart, which GitHub draws in any Markdown text.
func Mermaid(w io.Writer, workflow outline.Node, opts ...Option) error {
	return drawing.Mermaid(w, newConfig(workflow, opts).draw(workflow))
}

// SVG writes the workflow as an SVG document. It contains no scripts and refers to no other files,
// so that it can stand in a README, and it follows the light or dark color scheme of the reader's
// system.
func SVG(w io.Writer, workflow outline.Node, opts ...Option) error {
	return layered.SVG(w, newConfig(workflow, opts).draw(workflow))
}

func (c *config) draw(workflow outline.Node) *drawing.Graph {
	p := &painter{config: c, g: &drawing.Graph{Title: c.title, Direction: c.direction}}
	root := &p.g.Root
	ends := p.follow([]end{{node: p.g.AddNode(root, drawing.Node{Shape: drawing.Start})}}, root, workflow)
	p.join(ends, p.g.AddNode(root, drawing.Node{Shape: drawing.End}))
	return p.g
}

// A painter turns the tree of a workflow into nodes and edges. Every part of a workflow is drawn as
// a piece with one entry and any number of loose ends, which lead to whatever is drawn next.
type painter struct {
	*config
	g *drawing.Graph
}

// An end is an edge that has a beginning and is still without a target.
type end struct {
	node    string
	label   string
	dashed  bool
	cluster string // the frame that the edge begins at, if not at the node
}

func (p *painter) join(ends []end, to string) {
	for _, e := range ends {
		p.g.Edges = append(p.g.Edges, drawing.Edge{From: e.node, To: to, Label: e.label, Dashed: e.dashed, FromCluster: e.cluster})
	}
}

// follow draws n into c after ends and returns the loose ends of n.
func (p *painter) follow(ends []end, c *drawing.Cluster, n outline.Node) []end {
	switch n.Kind {
	case outline.KindSequential:
		return p.sequence(ends, c, n)
	case outline.KindJoin:
		return p.split(ends, c, n, "join")
	case outline.KindJoinOrdered:
		return p.split(ends, c, n, "join in order")
	case outline.KindParallelJoin:
		return p.split(ends, c, n, "parallel join")
	case outline.KindGraph:
		return p.graph(ends, c, n)
	case outline.KindIf, outline.KindIfElse:
		return p.decision(ends, c, n)
	case outline.KindTimeout:
		return p.frame(ends, c, n, "timeout "+n.Label)
	case outline.KindRetry:
		return p.frame(ends, c, n, "retry "+n.Label)
	case outline.KindOnce:
		return p.frame(ends, c, n, "once per run")
	case outline.KindFinally:
		return p.finally(ends, c, n)
	default:
		return p.action(ends, c, n)
	}
}

// action draws a single box: an action, nothing, or a kind that this package does not know.
func (p *painter) action(ends []end, c *drawing.Cluster, n outline.Node) []end {
	box := drawing.Node{Label: n.Label}
	switch {
	case n.Kind == outline.KindNop:
		box.Label, box.Tone = "nothing", drawing.Faded
	case !isAction(n):
		box.Label = n.String()
	case p.observed:
		outcome := p.outcomes.Of(n.Label)
		box.Tone = outcome.State.tone()
		box.Details = []string{unicodeSymbols.of(outcome.State) + " " + outcome.String()}
	}
	id := p.g.AddNode(c, box)
	p.join(ends, id)
	return []end{{node: id}}
}

func (p *painter) sequence(ends []end, c *drawing.Cluster, n outline.Node) []end {
	for _, child := range n.Children {
		ends = p.follow(ends, c, child)
	}
	return ends
}

// split draws branches that all begin at one place and meet again at another.
func (p *painter) split(ends []end, c *drawing.Cluster, n outline.Node, label string) []end {
	if len(n.Children) == 0 {
		return ends
	}
	fork := p.g.AddNode(c, drawing.Node{Shape: drawing.Fork, Label: label})
	p.join(ends, fork)
	var loose []end
	for i, child := range n.Children {
		begin := end{node: fork}
		if n.Kind == outline.KindJoinOrdered {
			begin.label = strconv.Itoa(i + 1)
		}
		loose = append(loose, p.follow([]end{begin}, c, child)...)
	}
	return p.meet(loose, c)
}

func (p *painter) meet(ends []end, c *drawing.Cluster) []end {
	meet := p.g.AddNode(c, drawing.Node{Shape: drawing.Meet})
	p.join(ends, meet)
	return []end{{node: meet}}
}

// graph draws the dependencies as they are: what depends on nothing begins at the fork, what
// nothing depends on leads to the meeting point.
func (p *painter) graph(ends []end, c *drawing.Cluster, n outline.Node) []end {
	if len(n.Children) == 0 {
		return ends
	}
	fork := p.g.AddNode(c, drawing.Node{Shape: drawing.Fork, Label: "graph"})
	p.join(ends, fork)
	loose := make([][]end, len(n.Children))
	isCause := make([]bool, len(n.Children))
	for i, child := range n.Children {
		var begin []end
		for _, cause := range after(n, i) {
			if cause < i { // a graph cannot be built otherwise
				begin, isCause[cause] = append(begin, loose[cause]...), true
			}
		}
		if len(begin) == 0 {
			begin = []end{{node: fork}}
		}
		loose[i] = p.follow(begin, c, child)
	}
	var last []end
	for i := range loose {
		if !isCause[i] {
			last = append(last, loose[i]...)
		}
	}
	return p.meet(last, c)
}

func (p *painter) decision(ends []end, c *drawing.Cluster, n outline.Node) []end {
	question := p.g.AddNode(c, drawing.Node{Shape: drawing.Decision, Label: n.Label})
	p.join(ends, question)
	var loose []end
	for i, answer := range []string{"yes", "no"} {
		begin := []end{{node: question, label: answer}}
		if i < len(n.Children) {
			begin = p.follow(begin, c, n.Children[i])
		}
		loose = append(loose, begin...)
	}
	return loose
}

// frame draws what is inside n in a frame with a label for what n does.
func (p *painter) frame(ends []end, c *drawing.Cluster, n outline.Node, label string) []end {
	return p.sequence(ends, p.g.AddCluster(c, label), n)
}

// finally draws the body in a frame, and from the frame a dashed edge to the tail: it is run
// however the body ends.
func (p *painter) finally(ends []end, c *drawing.Cluster, n outline.Node) []end {
	if len(n.Children) != 2 {
		return p.sequence(ends, c, n)
	}
	frame := p.g.AddCluster(c, "")
	frame.Dashed = true
	inside := p.follow(ends, frame, n.Children[0])
	if len(frame.Nodes) == 0 && len(frame.Clusters) == 0 { // an empty body
		inside = p.follow(ends, frame, outline.Node{Kind: outline.KindNop})
	}
	if len(inside) > 1 {
		inside = p.meet(inside, frame)
	}
	return p.follow([]end{{node: inside[0].node, label: "always", dashed: true, cluster: frame.ID}}, c, n.Children[1])
}
