// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"fmt"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// A layout is a drawing on its way to coordinates. The layers follow each other along one axis,
// down or to the right; what is on one layer stands across it, from left to right or from top to
// bottom.
type layout struct {
	graph  *drawing.Graph
	root   *frame
	frames []*frame // without the root, outer ones first
	cells  []*cell  // nodes in the order of the drawing, then bends
	edges  []*edge
	layers []layer

	size place // of the whole picture, below and to the right of its origin
}

// A place has coordinates across the layers and along them.
type place struct{ across, along float64 }

// A layer is a row of cells.
type layer struct {
	cells []*cell // in their order
	// forLabels says that the layer has no nodes, but the labels of the edges that begin on the
	// layer before.
	forLabels  bool
	thickness  int
	start, end float64
	// gapStart and gapEnd are where edges may lead to the side before they reach the next layer.
	gapStart, gapEnd float64
}

// A frame is a cluster of the drawing.
type frame struct {
	cluster  *drawing.Cluster
	parent   *frame
	children []*frame
	position int // among its siblings, on all layers

	label                   []string
	labelWidth, labelHeight int

	first, last int             // layer
	items       map[int][]*item // by layer, in order
	from, to    place
}

// A cell is what has a place on a layer: a node, the bend of an edge, or what keeps a frame's
// place.
type cell struct {
	node  *drawing.Node // nil if it is no node
	text  text          // what is written in it
	frame *frame        // the innermost one

	layer, order     int
	before, after    int // how far it extends from its axis across the layer
	length           int // how far it extends along
	half, tall       int // half of the node's own extent across, and that along
	axis             float64
	backward, onward []*link
	loop             *edge // from the node to itself
	visited          int
}

// An edge is a chain of cells, one on each layer from its upper end to its lower one.
type edge struct {
	*drawing.Edge
	cells    []*cell
	links    []*link
	reversed bool // it leads to an earlier layer
	origin   *frame

	label      []string
	labelCell  *cell
	labelWidth int
}

// A link is the part of an edge between two layers.
type link struct {
	edge             *edge
	from, to         *cell
	fromPort, toPort int // how far beside the axes of its cells it begins and ends
}

// lay gives everything in g a place.
func lay(g *drawing.Graph) (*layout, error) {
	l := &layout{graph: g}
	ids := map[string]*cell{}
	frames := map[string]*frame{}
	l.root = l.collect(&g.Root, nil, ids, frames)
	if err := l.connect(ids, frames); err != nil {
		return nil, err
	}
	l.breakCircles()
	l.assignLayers()
	l.addLabelLayers()
	l.spanFrames()
	l.bend()
	l.fillFrames()
	order := &ordering{l}
	order.arrange()
	l.assignPorts()
	l.placeAcross()
	l.placeAlong()
	return l, nil
}

// collect adds the cells of c and of the clusters in it.
func (l *layout) collect(c *drawing.Cluster, parent *frame, ids map[string]*cell, frames map[string]*frame) *frame {
	f := &frame{cluster: c, parent: parent, items: map[int][]*item{}}
	if parent != nil {
		l.frames = append(l.frames, f)
		if frames[c.ID] == nil {
			frames[c.ID] = f
		}
		f.setLabel(drawing.LabelLines(c.Label))
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		cell := newNode(n, l.graph.Direction)
		cell.frame = f
		l.cells = append(l.cells, cell)
		if ids[n.ID] == nil {
			ids[n.ID] = cell
		}
	}
	for _, inner := range c.Clusters {
		f.children = append(f.children, l.collect(inner, f, ids, frames))
	}
	if parent != nil && len(c.Nodes) == 0 && len(c.Clusters) == 0 {
		l.cells = append(l.cells, &cell{frame: f}) // so that an empty frame has a place
	}
	return f
}

func (f *frame) setLabel(lines []string) {
	if blank(lines) {
		return
	}
	f.label = lines
	f.labelWidth, f.labelHeight = widest(lines, smallSize), len(lines)*smallHeight
}

func blank(lines []string) bool {
	for _, line := range lines {
		if line != "" {
			return false
		}
	}
	return true
}

// connect adds the edges.
func (l *layout) connect(ids map[string]*cell, frames map[string]*frame) error {
	for i := range l.graph.Edges {
		e := &edge{Edge: &l.graph.Edges[i]}
		from, to := ids[e.From], ids[e.To]
		for id, end := range map[string]*cell{e.From: from, e.To: to} {
			if end == nil {
				return fmt.Errorf("edge from %q to %q: the drawing has no node %q", e.From, e.To, id)
			}
		}
		if e.FromCluster != "" {
			if e.origin = frames[e.FromCluster]; e.origin == nil {
				return fmt.Errorf("edge from %q to %q: the drawing has no cluster %q", e.From, e.To, e.FromCluster)
			}
			if !e.origin.holds(from) || e.origin.holds(to) {
				e.origin = nil // such an edge cannot begin at the frame
			}
		}
		if lines := drawing.LabelLines(e.Label); !blank(lines) {
			e.label, e.labelWidth = lines, widest(lines, smallSize)
		}
		e.cells = []*cell{from, to}
		if from == to {
			from.addLoop(e, l.graph.Direction)
			continue
		}
		l.edges = append(l.edges, e)
	}
	return nil
}

// allFrames returns the root and all frames, outer ones first.
func (l *layout) allFrames() []*frame { return append([]*frame{l.root}, l.frames...) }

// holds reports whether c is in f or in a frame within f.
func (f *frame) holds(c *cell) bool {
	for g := c.frame; g != nil; g = g.parent {
		if g == f {
			return true
		}
	}
	return false
}

// spans reports whether f extends over a layer.
func (f *frame) spans(layer int) bool { return f.first <= layer && layer <= f.last }
