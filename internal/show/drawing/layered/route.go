// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"math"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// A segment of an edge is a curve between two places that begins and ends along the layers, or a
// straight line.
type segment struct{ from, to place }

// sides returns where a link begins and ends, across.
func (k *link) sides() (from, to float64) {
	return k.from.axis + float64(k.fromPort), k.to.axis + float64(k.toPort)
}

// route returns the way of an edge from its upper end to its lower one. It leads to the side only
// between the layers, where there are neither nodes nor the sides of frames that it does not leave
// or enter.
func (l *layout) route(e *edge) []segment {
	var way []segment
	at, begun := place{}, false
	straight := func(along float64) {
		if to := (place{at.across, along}); to != at {
			way, at = append(way, segment{at, to}), to
		}
	}
	for _, k := range e.links {
		if e.origin != nil && k.from.layer < e.origin.last {
			continue
		}
		from, to := k.sides()
		gap := l.layers[k.from.layer]
		start, end := gap.gapStart, gap.gapEnd
		if !begun {
			at, begun = place{from, l.beginning(k)}, true
			if e.reversed {
				start = max(start, at.along+arrowLength)
			}
		}
		last := k == e.links[len(e.links)-1]
		if last && !e.reversed {
			end = min(end, l.border(k.to, to, -1)-arrowLength)
		}
		straight(start)
		if from == to {
			straight(end)
		} else {
			turned := place{to, end}
			way, at = append(way, segment{at, turned}), turned
		}
		if last {
			straight(l.border(k.to, to, -1))
		}
	}
	return way
}

// beginning returns where the first link of an edge begins, along.
func (l *layout) beginning(k *link) float64 {
	if k.edge.origin != nil {
		return k.edge.origin.to.along
	}
	from, _ := k.sides()
	return l.border(k.from, from, 1)
}

// center returns where a cell stands, along.
func (l *layout) center(c *cell) float64 {
	return (l.layers[c.layer].start + l.layers[c.layer].end) / 2
}

// border returns where an edge meets the outline of a cell, along: on the side where the edge is,
// -1 for the one that comes first.
func (l *layout) border(c *cell, across, side float64) float64 {
	center := l.center(c)
	if c.node == nil {
		return center
	}
	half, depth := float64(c.half), float64(c.tall)/2
	aside := min(math.Abs(across-c.axis)/half, 1)
	round := math.Sqrt(1 - aside*aside)
	switch c.node.Shape {
	case drawing.Start, drawing.End, drawing.Meet:
		depth *= round
	case drawing.Decision:
		depth *= 1 - aside
	case drawing.Store:
		if l.graph.Direction == drawing.TopDown {
			depth -= rim * (1 - round)
		}
	}
	return center + side*depth
}

// loopPlaces returns the four points of the curve of an edge from a node to itself.
func (l *layout) loopPlaces(c *cell) [4]place {
	center, side, quarter := l.center(c), c.axis+float64(c.half), float64(c.tall)/4
	if c.node.Shape == drawing.Decision {
		side -= float64(c.half) / 2
	}
	far := c.axis + float64(c.half) + loopWidth
	return [4]place{{side, center - quarter}, {far, center - quarter}, {far, center + quarter}, {side, center + quarter}}
}
