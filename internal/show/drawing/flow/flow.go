// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package flow draws the outline of a workflow as nodes and edges of a drawing.
//
// It knows neither how actions run nor how a picture looks: what became of an action comes from the
// caller, and the picture is made by packages drawing and layered.
package flow

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// An Outcome says what became of an action by its description: a tone, and lines that say the same
// in words. A nil Outcome is for a workflow as it is written.
type Outcome func(action string) (drawing.Tone, []string)

// Draw adds a workflow to a cluster, between two dots.
func Draw(g *drawing.Graph, c *drawing.Cluster, workflow outline.Node, outcome Outcome) {
	b := Begin(g, c)
	b.Add(c, workflow, outcome)
	b.End(c)
}

// A Chain draws one workflow after the other.
type Chain struct {
	g    *drawing.Graph
	ends []end
}

// Begin draws the dot at which a chain begins.
func Begin(g *drawing.Graph, c *drawing.Cluster) *Chain {
	return &Chain{g, []end{{node: g.AddNode(c, drawing.Node{Shape: drawing.Start})}}}
}

// Add draws a workflow into a cluster, after what was added before.
func (b *Chain) Add(c *drawing.Cluster, workflow outline.Node, outcome Outcome) {
	p := &painter{b.g, outcome}
	b.ends = p.follow(b.ends, c, workflow)
}

// End draws the dot at which a chain ends.
func (b *Chain) End(c *drawing.Cluster) {
	(&painter{g: b.g}).join(b.ends, b.g.AddNode(c, drawing.Node{Shape: drawing.End}))
}

// After returns the children that the i-th child of a graph comes after. Invalid indexes, of a node
// that was made by hand, are left out.
func After(n outline.Node, i int) []int {
	if i >= len(n.After) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.After[i]), func(c int) bool { return c < 0 || c >= len(n.Children) || c == i })
}

// IsAction reports whether n is a single box: an action.
func IsAction(n outline.Node) bool { return n.Kind == outline.KindAction }

// A painter turns the tree of a workflow into nodes and edges. Every part of a workflow is drawn as
// a piece with one entry and any number of loose ends, which lead to whatever is drawn next.
type painter struct {
	g       *drawing.Graph
	outcome Outcome
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
		return p.split(ends, c, n, strings.TrimSuffix("parallel join, "+n.Label, ", "))
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
	case !IsAction(n):
		box.Label = n.String()
	case p.outcome != nil:
		box.Tone, box.Details = p.outcome(n.Label)
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
	fork := p.g.AddNode(c, drawing.Node{Shape: drawing.Fork, Label: strings.TrimSuffix("graph, "+n.Label, ", ")})
	p.join(ends, fork)
	loose := make([][]end, len(n.Children))
	isCause := make([]bool, len(n.Children))
	for i, child := range n.Children {
		var begin []end
		for _, cause := range After(n, i) {
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
