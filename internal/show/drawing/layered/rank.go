// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// breakCircles turns around the edges that lead back, so that all lead from earlier layers to later
// ones.
func (l *layout) breakCircles() {
	onward := map[*cell][]*edge{}
	entered := map[*cell]bool{}
	for _, e := range l.edges {
		onward[e.cells[0]] = append(onward[e.cells[0]], e)
		entered[e.cells[1]] = true
	}
	const (
		active = iota + 1
		done
	)
	state := map[*cell]int{}
	var visit func(c *cell)
	visit = func(c *cell) {
		state[c] = active
		for _, e := range onward[c] {
			switch state[e.cells[1]] {
			case active:
				e.reversed = true
			case 0:
				visit(e.cells[1])
			}
		}
		state[c] = done
	}
	for _, beginnings := range []bool{true, false} {
		for _, c := range l.cells {
			if state[c] == 0 && entered[c] != beginnings {
				visit(c)
			}
		}
	}
	for _, e := range l.edges {
		if e.reversed {
			e.cells[0], e.cells[1] = e.cells[1], e.cells[0]
			e.origin = nil
		}
	}
}

// assignLayers finds layers for the nodes so that edges are short.
func (l *layout) assignLayers() {
	index := map[*cell]int{}
	for i, c := range l.cells {
		index[c] = i
	}
	var arcs []arc
	onward := make([][]int, len(l.cells))
	add := func(from, to, cost int) {
		arcs = append(arcs, arc{tail: from, head: to, length: 1, cost: cost})
		onward[from] = append(onward[from], to)
	}
	for _, e := range l.edges {
		cost := 1
		if e.cells[0].node != nil && e.cells[0].node.Shape == drawing.Fork {
			cost = 4 // so that branches begin on one line
		}
		add(index[e.cells[0]], index[e.cells[1]], cost)
	}
	// What an edge from a frame leads to comes after all that is in the frame, if that is possible.
	for _, e := range l.edges {
		if e.origin == nil {
			continue
		}
		reached := reachable(onward, index[e.cells[1]])
		for i, c := range l.cells {
			if e.origin.holds(c) && !reached[i] {
				add(i, index[e.cells[1]], 0)
			}
		}
	}
	for i, layer := range lowest(len(l.cells), arcs, nil) {
		l.cells[i].layer = layer
	}
}

// reachable returns which variables can be reached from one of them.
func reachable(onward [][]int, from int) []bool {
	reached := make([]bool, len(onward))
	reached[from] = true
	for open := []int{from}; len(open) > 0; {
		v := open[len(open)-1]
		open = open[:len(open)-1]
		for _, w := range onward[v] {
			if !reached[w] {
				reached[w] = true
				open = append(open, w)
			}
		}
	}
	return reached
}

// addLabelLayers inserts a layer after each on which an edge with a label begins.
func (l *layout) addLabelLayers() {
	last := -1
	for _, c := range l.cells {
		last = max(last, c.layer)
	}
	labeled := make([]bool, last+1)
	for _, e := range l.edges {
		if len(e.label) > 0 {
			labeled[e.labeled()] = true
		}
	}
	moved := make([]int, last+1)
	for i := range moved {
		moved[i] = len(l.layers)
		l.layers = append(l.layers, layer{})
		if labeled[i] {
			l.layers = append(l.layers, layer{forLabels: true})
		}
	}
	for _, c := range l.cells {
		c.layer = moved[c.layer]
	}
}

// labeled returns the layer before the one that the label of e stands on: near the beginning of the
// edge.
func (e *edge) labeled() int {
	if e.reversed {
		return e.cells[len(e.cells)-1].layer - 1
	}
	return e.cells[0].layer
}

// spanFrames finds the layers over which each frame extends.
func (l *layout) spanFrames() {
	for _, f := range l.allFrames() {
		f.first, f.last = len(l.layers), -1
	}
	for _, c := range l.cells {
		for f := c.frame; f != nil; f = f.parent {
			f.first, f.last = min(f.first, c.layer), max(f.last, c.layer)
		}
	}
	// Outside of everything there is always something.
	l.root.first, l.root.last = 0, len(l.layers)-1
}

// bend makes a chain of links of each edge, with a bend on every layer between its ends.
func (l *layout) bend() {
	for _, e := range l.edges {
		upper, lower := e.cells[0], e.cells[1]
		if e.origin != nil && lower.layer <= e.origin.last {
			e.origin = nil // something in the frame comes after what the edge leads to
		}
		labelLayer := -1
		if len(e.label) > 0 {
			labelLayer = e.labeled() + 1
		}
		chain := []*cell{upper}
		for at := upper.layer + 1; at < lower.layer; at++ {
			b := &cell{frame: around(upper, lower, at), layer: at}
			if at == labelLayer {
				b.makeLabel(e, l.graph.Direction)
			}
			chain = append(chain, b)
			l.cells = append(l.cells, b)
		}
		e.cells = append(chain, lower)
		for i := range len(e.cells) - 1 {
			from, to := e.cells[i], e.cells[i+1]
			k := &link{edge: e, from: from, to: to}
			e.links = append(e.links, k)
			from.onward, to.backward = append(from.onward, k), append(to.backward, k)
		}
	}
}

// straightness says how much it costs that k is not straight: most in the middle of a long edge,
// and more where nothing else leaves or enters a node than where edges fan out or meet.
func (k *link) straightness() int {
	alone := 0
	if k.from.node != nil && len(k.from.onward) == 1 {
		alone++
	}
	if k.to.node != nil && len(k.to.backward) == 1 {
		alone++
	}
	switch {
	case k.from.node != nil && k.to.node != nil:
		return 1 + alone
	case k.from.node != nil:
		return 3 + 2*alone
	case k.to.node != nil:
		return 2 + 2*alone
	default:
		return 8
	}
}

// around returns the frame that a bend between two nodes is in: it leaves the frames of the upper
// one at their ends, and enters those of the lower one at their beginnings.
func around(upper, lower *cell, at int) *frame {
	var above, below []*frame
	for f := upper.frame; f != nil; f = f.parent {
		above = append(above, f)
	}
	for f := lower.frame; f != nil; f = f.parent {
		below = append(below, f)
	}
	for _, f := range above {
		if f.spans(at) && !slices.Contains(below, f) {
			return f
		}
	}
	for _, f := range below {
		if f.spans(at) {
			return f
		}
	}
	return below[len(below)-1]
}

// makeLabel makes room for the label of e at its bend c: to the right of the edge, or above it.
func (c *cell) makeLabel(e *edge, direction drawing.Direction) {
	e.labelCell = c
	if direction == drawing.LeftRight {
		c.before, c.length = len(e.label)*smallHeight+2, e.labelWidth+4
	} else {
		c.after, c.length = e.labelWidth+6, len(e.label)*smallHeight
	}
}

// fillFrames puts something into each frame on the layers that it extends over and has nothing on,
// so that its place is kept.
func (l *layout) fillFrames() {
	present := map[*frame]map[int]bool{}
	mark := func(c *cell) {
		for f := c.frame; f != nil; f = f.parent {
			if present[f] == nil {
				present[f] = map[int]bool{}
			}
			present[f][c.layer] = true
		}
	}
	for _, c := range l.cells {
		mark(c)
	}
	for _, f := range slices.Backward(l.frames) { // inner ones first
		for at := f.first; at <= f.last; at++ {
			if !present[f][at] {
				filler := &cell{frame: f, layer: at}
				l.cells = append(l.cells, filler)
				mark(filler)
			}
		}
	}
}
