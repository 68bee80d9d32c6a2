// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// The radii of the dots.
const (
	startRadius, endRadius, endCore, meetRadius = 6, 8, 4.5, 3.5
)

const (
	corner    = 12 // the radius of the corners of boxes
	rim       = 4  // the depth of the ends of a store
	loopWidth = 22
)

// text is what is written in a node.
type text struct {
	label, details []string
	size           int // of the letters of the label
}

func (t text) width() int {
	return max(widest(t.label, t.size), widest(t.details, detailSize))
}

func (t text) height() int {
	return len(t.label)*lineHeight(t.size) + len(t.details)*detailHeight
}

func lineHeight(size int) int {
	if size == pillSize {
		return pillSize + 2
	}
	return labelHeight
}

// newNode returns the cell of a node, as large as its text demands.
func newNode(n *drawing.Node, direction drawing.Direction) *cell {
	c := &cell{node: n, text: text{size: labelSize}}
	width, height := 0, 0
	switch n.Shape {
	case drawing.Start:
		width, height = 2*startRadius, 2*startRadius
	case drawing.End:
		width, height = 2*endRadius, 2*endRadius
	case drawing.Meet:
		width, height = 2*meetRadius, 2*meetRadius
	default:
		c.text.label, c.text.details = n.Lines()
		if n.Shape == drawing.Fork {
			c.text.size = pillSize
		}
		width, height = outline(n.Shape, c.text.width(), c.text.height())
	}
	// Both are even, so that the axis is between two equal halves.
	width, height = width+width%2, height+height%2
	if direction == drawing.LeftRight {
		width, height = height, width
	}
	c.before, c.after, c.length = width/2, width/2, height
	c.half, c.tall = width/2, height
	return c
}

// outline returns the size of a shape around text.
func outline(shape drawing.Shape, width, height int) (int, int) {
	switch shape {
	case drawing.Fork:
		return max(width+18, 54), max(height+6, 18)
	case drawing.Decision:
		// The corners of the text touch the sides when its width and height, each as a part of the
		// shape's, make one.
		h := max(2*height+12, 44)
		return width*h/(h-height) + 14, h
	case drawing.Store:
		return max(width+40, 54), max(height+2*rim+12, 36)
	case drawing.Head:
		return max(width+44, 62), max(height+20, 44)
	default:
		return max(width+38, 54), max(height+12, 36)
	}
}

// addLoop makes room beside a node for an edge that leads back to it. Several look like one, with
// all their labels.
func (c *cell) addLoop(e *edge, direction drawing.Direction) {
	if c.loop == nil {
		c.loop = e
	} else {
		c.loop.label = append(c.loop.label, e.label...)
		c.loop.labelWidth = max(c.loop.labelWidth, e.labelWidth)
	}
	width, height := c.loop.labelWidth, len(c.loop.label)*smallHeight
	if direction == drawing.LeftRight {
		width, height = height, width
	}
	c.after, c.length = c.half+loopWidth+width, max(c.tall, height)
}

// ports returns how far from the axis of c each of n links begins or ends.
func (c *cell) ports(n int, direction drawing.Direction) []int {
	ports := make([]int, n)
	if n < 2 || c.node == nil {
		return ports
	}
	room := 2*c.half - 2*corner
	switch c.node.Shape {
	case drawing.Start, drawing.End, drawing.Meet:
		room = 0
	case drawing.Decision:
		room = c.half
	case drawing.Store:
		if direction == drawing.LeftRight {
			room = 2*c.half - 4*rim
		}
	}
	step := min(20, max(room, 0)/(n-1))
	for i := range ports {
		ports[i] = step*i - step*(n-1)/2
	}
	return ports
}

// assignPorts spreads the links of each node over its sides, in the order of their other ends.
func (l *layout) assignPorts() {
	for _, c := range l.cells {
		if c.node == nil {
			continue
		}
		slices.SortStableFunc(c.onward, func(a, b *link) int { return a.to.order - b.to.order })
		slices.SortStableFunc(c.backward, func(a, b *link) int { return a.from.order - b.from.order })
		for i, port := range c.ports(len(c.onward), l.graph.Direction) {
			c.onward[i].fromPort = port
		}
		for i, port := range c.ports(len(c.backward), l.graph.Direction) {
			c.backward[i].toPort = port
		}
	}
}
