// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"cmp"
	"slices"
)

// An item is what stands beside others in a frame on one layer: a cell, or another frame with all
// that it holds there.
type item struct {
	cell  *cell
	frame *frame
	value float64
	known bool // whether value says where the item should stand
}

// sweeps is how often all layers are sorted, downwards and upwards in turns.
const sweeps = 16

// An ordering looks for the order of the cells on each layer. It works on the items of the layout's
// frames, and leaves the order of the cells and nothing else.
type ordering struct{ *layout }

// arrange finds an order of the cells in which few edges cross. On all layers, frames in the same
// frame stand in the same order: otherwise they could not be rectangles.
func (o *ordering) arrange() {
	o.visit()
	for _, c := range o.cells {
		o.layers[c.layer].cells = append(o.layers[c.layer].cells, c)
	}
	for _, f := range o.allFrames() {
		f.position = f.earliest(o.cells)
	}
	for i := range o.layers {
		o.itemize(i)
	}
	best, least := o.save(), o.crossings()
	for sweep := 0; sweep < sweeps && least > 0; sweep++ {
		o.sweep(sweep%2 == 0, sweep%4 >= 2)
		if n := o.crossings(); n < least {
			best, least = o.save(), n
		}
	}
	o.restore(best)
}

// visit numbers the cells by following the edges in the order in which they were added. In that
// order, what forks and meets again crosses nothing.
func (o *ordering) visit() {
	visited := 0
	var follow func(c *cell)
	follow = func(c *cell) {
		visited++
		c.visited = visited
		for _, k := range c.onward {
			if k.to.visited == 0 {
				follow(k.to)
			}
		}
	}
	for _, beginnings := range []bool{true, false} {
		for _, c := range o.cells {
			if c.visited == 0 && (len(c.backward) == 0) == beginnings {
				follow(c)
			}
		}
	}
}

func (f *frame) earliest(cells []*cell) int {
	first := len(cells) + 1
	for _, c := range cells {
		if f.holds(c) {
			first = min(first, c.visited)
		}
	}
	return first
}

// itemize sorts the cells of a layer into the frames, each at the place of its first cell.
func (o *ordering) itemize(at int) {
	cells := o.layers[at].cells
	slices.SortStableFunc(cells, func(a, b *cell) int { return cmp.Compare(a.visited, b.visited) })
	seen := map[*frame]bool{}
	for _, c := range cells {
		c.frame.items[at] = append(c.frame.items[at], &item{cell: c})
		for f := c.frame; f.parent != nil && !seen[f]; f = f.parent {
			seen[f] = true
			f.parent.items[at] = append(f.parent.items[at], &item{frame: f})
		}
	}
	for _, f := range o.allFrames() {
		f.alignFrames(at)
	}
	o.number(at)
}

// alignFrames puts the frames in f into their common order; each place that a frame had is taken by
// a frame.
func (f *frame) alignFrames(at int) {
	items := f.items[at]
	var inner []*item
	for _, it := range items {
		if it.frame != nil {
			inner = append(inner, it)
		}
	}
	if len(inner) < 2 {
		return
	}
	slices.SortStableFunc(inner, func(a, b *item) int { return cmp.Compare(a.frame.position, b.frame.position) })
	for i, it := range items {
		if it.frame != nil {
			items[i], inner = inner[0], inner[1:]
		}
	}
}

// number writes down the order of the cells on a layer.
func (o *ordering) number(at int) {
	cells := o.layers[at].cells[:0]
	o.root.eachCell(at, func(c *cell) {
		c.order = len(cells)
		cells = append(cells, c)
	})
	o.layers[at].cells = cells
}

// eachCell visits the cells of f on a layer in order.
func (f *frame) eachCell(at int, visit func(*cell)) {
	for _, it := range f.items[at] {
		if it.frame != nil {
			it.frame.eachCell(at, visit)
		} else {
			visit(it.cell)
		}
	}
}

// sweep moves every cell to the middle of its neighbors on the layer before, or on the layer
// after. Of cells with the same middle, the first or the last remains first.
func (o *ordering) sweep(down, turn bool) {
	o.orderFrames()
	for i := range o.layers {
		at := i
		if !down {
			at = len(o.layers) - 1 - i
		}
		for _, f := range o.allFrames() {
			if f.spans(at) {
				f.sort(at, down, turn)
				f.alignFrames(at)
			}
		}
		o.number(at)
	}
}

// orderFrames gives the frames in each frame a common order: by the middle of all that they hold.
func (o *ordering) orderFrames() {
	for _, f := range o.allFrames() {
		middle := map[*frame]float64{}
		for _, child := range f.children {
			sum, n := 0.0, 0
			for at := child.first; at <= child.last; at++ {
				child.eachCell(at, func(c *cell) {
					sum += (float64(c.order) + 0.5) / float64(len(o.layers[at].cells))
					n++
				})
			}
			middle[child] = sum / float64(max(n, 1))
		}
		sorted := slices.Clone(f.children)
		slices.SortStableFunc(sorted, func(a, b *frame) int {
			return cmp.Or(cmp.Compare(middle[a], middle[b]), cmp.Compare(a.position, b.position))
		})
		for i, child := range sorted {
			child.position = i
		}
	}
}

// sort orders the items whose place is known. The others keep theirs.
func (f *frame) sort(at int, down, turn bool) {
	var known []*item
	for _, it := range f.items[at] {
		if it.measure(at, down); it.known {
			known = append(known, it)
		}
	}
	if turn {
		slices.Reverse(known)
	}
	slices.SortStableFunc(known, func(a, b *item) int { return cmp.Compare(a.value, b.value) })
	for i, it := range f.items[at] {
		if it.known {
			f.items[at][i], known = known[0], known[1:]
		}
	}
}

func (it *item) measure(at int, down bool) {
	sum, n := 0, 0
	add := func(c *cell) {
		if down {
			for _, k := range c.backward {
				sum, n = sum+k.from.order, n+1
			}
		} else {
			for _, k := range c.onward {
				sum, n = sum+k.to.order, n+1
			}
		}
	}
	if it.frame != nil {
		it.frame.eachCell(at, add)
	} else {
		add(it.cell)
	}
	it.known = n > 0
	it.value = float64(sum) / float64(max(n, 1))
}

// An arrangement is the order of the items of all frames on all layers.
type arrangement struct {
	items     map[*frame]map[int][]*item
	positions map[*frame]int
}

func (o *ordering) save() arrangement {
	a := arrangement{items: map[*frame]map[int][]*item{}, positions: map[*frame]int{}}
	for _, f := range o.allFrames() {
		a.items[f], a.positions[f] = map[int][]*item{}, f.position
		for at, items := range f.items {
			a.items[f][at] = slices.Clone(items)
		}
	}
	return a
}

func (o *ordering) restore(a arrangement) {
	for f, items := range a.items {
		f.items, f.position = items, a.positions[f]
	}
	for at := range o.layers {
		o.number(at)
	}
}

// crossings counts the crossings between all layers.
func (o *ordering) crossings() int {
	n := 0
	for at := range o.layers {
		n += o.crossingsAfter(at)
	}
	return n
}

// crossingsAfter counts the crossings between a layer and the next one: for every link, the links
// from further left that end further right. The counts are kept in a binary tree, so that this
// takes little more time than there are links.
func (o *ordering) crossingsAfter(at int) int {
	if at+1 >= len(o.layers) {
		return 0
	}
	width := len(o.layers[at+1].cells)
	counts := make([]int, width+1)
	crossings, total := 0, 0
	for _, c := range o.layers[at].cells {
		for _, k := range c.onward {
			notRight := 0
			for i := k.to.order + 1; i > 0; i -= i & -i {
				notRight += counts[i]
			}
			crossings += total - notRight
		}
		for _, k := range c.onward {
			total++
			for i := k.to.order + 1; i <= width; i += i & -i {
				counts[i]++
			}
		}
	}
	return crossings
}
