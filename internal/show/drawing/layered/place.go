// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"math"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// Distances in points.
const (
	margin      = 9  // around the picture
	padding     = 12 // between a frame and what is in it
	nodeGap     = 28 // between nodes on a layer
	bendGap     = 14 // beside the bend of an edge
	frameGap    = 18 // beside a frame
	layerGap    = 34 // between layers
	labelGap    = 18 // before and after a layer of labels
	arrowLength = 8
)

// A column has the numbers of two variables for what stands on a layer, where it begins and where
// it ends or twice its axis, and how far it extends beyond them.
type column struct{ start, end, before, after int }

// placeAcross finds coordinates across the layers: the order is kept, nothing touches, and edges
// are straight where that is possible.
func (l *layout) placeAcross() {
	a := &acrossProblem{layout: l, number: map[*cell]int{}, frames: map[*frame]int{}}
	for i, c := range l.cells {
		a.number[c] = i
	}
	for i, f := range l.frames {
		a.frames[f] = len(l.cells) + 2*i
	}
	for at := range l.layers {
		a.separate(l.root, at)
	}
	for _, f := range l.frames {
		a.bound(f)
	}
	for _, e := range l.edges {
		for _, k := range e.links {
			a.pull(k)
		}
	}
	values := balanced(len(l.cells)+2*len(l.frames), a.arcs, a.springs)
	for c, i := range a.number {
		c.axis = values[i]
	}
	for f, i := range a.frames {
		f.from.across, f.to.across = values[i], values[i+1]
	}
	l.normalize()
}

// acrossProblem has a variable for the axis of each cell and two for the sides of each frame.
type acrossProblem struct {
	*layout
	number  map[*cell]int
	frames  map[*frame]int // of the side at which the frame begins
	arcs    []arc
	springs []spring
}

func (a *acrossProblem) column(it *item) column {
	if it.frame != nil {
		return column{a.frames[it.frame], a.frames[it.frame] + 1, 0, 0}
	}
	i := a.number[it.cell]
	return column{i, i, it.cell.before, it.cell.after}
}

// separate keeps what is in f on a layer apart and inside.
func (a *acrossProblem) separate(f *frame, at int) {
	items := f.items[at]
	for i, it := range items {
		c := a.column(it)
		if it.frame != nil {
			a.separate(it.frame, at)
		}
		if f != a.root {
			a.arcs = append(a.arcs,
				arc{tail: a.frames[f], head: c.start, length: a.paddingBefore(f) + c.before},
				arc{tail: c.end, head: a.frames[f] + 1, length: padding + c.after})
		}
		if i > 0 {
			left := a.column(items[i-1])
			a.arcs = append(a.arcs, arc{tail: left.end, head: c.start, length: left.after + gap(items[i-1], it) + c.before})
		}
	}
}

func gap(a, b *item) int {
	switch {
	case a.frame != nil || b.frame != nil:
		return frameGap
	case a.cell.node == nil || b.cell.node == nil:
		return bendGap
	default:
		return nodeGap
	}
}

// paddingBefore leaves room for the label of a frame when layers follow each other to the right:
// then it stands across.
func (a *acrossProblem) paddingBefore(f *frame) int {
	if a.graph.Direction == drawing.LeftRight && f.labelHeight > 0 {
		return padding + f.labelHeight
	}
	return padding
}

// bound keeps a frame narrow, but as wide as its label, and the edges that enter it beside the
// label.
func (a *acrossProblem) bound(f *frame) {
	start := a.frames[f]
	width := 2 * padding
	if a.graph.Direction == drawing.TopDown {
		width += f.labelWidth
	}
	a.arcs = append(a.arcs, arc{tail: start, head: start + 1, length: width, cost: 4})
	if f.labelWidth == 0 || a.graph.Direction != drawing.TopDown {
		return
	}
	for _, c := range a.layers[f.first].cells {
		if !f.holds(c) {
			continue
		}
		for _, k := range c.backward {
			a.arcs = append(a.arcs, arc{tail: start, head: a.number[c], length: padding + f.labelWidth + 8 - k.toPort})
		}
	}
}

// pull draws the two ends of a link into one line.
func (a *acrossProblem) pull(k *link) {
	a.springs = append(a.springs, spring{a: a.number[k.from], b: a.number[k.to], offset: k.fromPort - k.toPort, cost: k.straightness()})
}

// normalize moves everything so that the picture begins at its margin.
func (l *layout) normalize() {
	if len(l.cells) == 0 {
		l.size.across = 2 * margin
		return
	}
	start, end := l.cells[0].axis, l.cells[0].axis
	for _, c := range l.cells {
		start, end = min(start, c.axis-float64(c.before)), max(end, c.axis+float64(c.after))
	}
	for _, f := range l.frames {
		start, end = min(start, f.from.across), max(end, f.to.across)
	}
	move := margin - start
	for _, c := range l.cells {
		c.axis += move
	}
	for _, f := range l.frames {
		f.from.across, f.to.across = f.from.across+move, f.to.across+move
	}
	l.size.across = end - start + 2*margin
}

// placeAlong finds coordinates along the layers. Between two layers there is room for the ends of
// frames, then for edges, then for the beginnings of frames.
func (l *layout) placeAlong() {
	for _, c := range l.cells {
		l.layers[c.layer].thickness = max(l.layers[c.layer].thickness, c.length)
	}
	extra := map[*frame]float64{} // for labels that are longer than their frames
	l.stack(extra)
	if l.graph.Direction != drawing.LeftRight {
		return
	}
	for _, f := range slices.Backward(l.frames) { // inner ones first
		if missing := float64(f.labelWidth+2*padding) - (f.to.along - f.from.along); f.labelWidth > 0 && missing > 0 {
			extra[f] = missing
			l.stack(extra)
		}
	}
}

// stack puts the layers one after another. Frames with something extra extend that much further.
func (l *layout) stack(extra map[*frame]float64) {
	begins, ends := make([]float64, len(l.layers)), make([]float64, len(l.layers))
	leading, trailing := map[*frame]float64{}, map[*frame]float64{} // the room that a frame takes beyond its cells
	for _, f := range slices.Backward(l.frames) {                   // inner ones first
		leading[f] += padding
		if l.graph.Direction == drawing.TopDown {
			leading[f] += float64(f.labelHeight)
		}
		trailing[f] += padding + extra[f]
		begins[f.first], ends[f.last] = max(begins[f.first], leading[f]), max(ends[f.last], trailing[f])
		if f.parent.first == f.first {
			leading[f.parent] = max(leading[f.parent], leading[f])
		}
		if f.parent.last == f.last {
			trailing[f.parent] = max(trailing[f.parent], trailing[f])
		}
	}
	at := float64(margin)
	for i := range l.layers {
		y := &l.layers[i]
		y.start = at + begins[i]
		y.end = y.start + float64(y.thickness)
		y.gapStart = y.end + ends[i]
		y.gapEnd = y.gapStart + l.gapAfter(i)
		at = y.gapEnd
		l.size.along = y.gapStart + margin
	}
	for _, f := range l.frames {
		f.from.along = l.layers[f.first].start - leading[f]
		f.to.along = l.layers[f.last].end + trailing[f]
	}
	l.size.along = max(l.size.along, 2*margin)
}

// gapAfter returns the room for the edges after a layer: more for those that lead far to the
// side.
func (l *layout) gapAfter(at int) float64 {
	room := float64(layerGap)
	if l.layers[at].forLabels || (at+1 < len(l.layers) && l.layers[at+1].forLabels) {
		room = labelGap
	}
	aside := 0.0
	for _, c := range l.layers[at].cells {
		for _, k := range c.onward {
			from, to := k.sides()
			aside = max(aside, math.Abs(to-from))
		}
	}
	return room + math.Round(min(aside/10, layerGap)) // whole, so that coordinates are exact
}
