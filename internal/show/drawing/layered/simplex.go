// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

// An arc keeps the variable head at least length above the variable tail. Every unit of the
// distance costs cost.
type arc struct{ tail, head, length, cost int }

// A spring draws the variables a and b towards b = a + offset. Every unit that they are off costs
// cost.
type spring struct{ a, b, offset, cost int }

// balanced returns values for n variables that respect all arcs and cost little. Where values cost
// the same, it chooses the middle: half the sum of the lowest values and the highest.
func balanced(n int, arcs []arc, springs []spring) []float64 {
	low := lowest(n, arcs, springs)
	mirroredArcs, mirroredSprings := make([]arc, len(arcs)), make([]spring, len(springs))
	for i, a := range arcs {
		mirroredArcs[i] = arc{tail: a.head, head: a.tail, length: a.length, cost: a.cost}
	}
	for i, s := range springs {
		mirroredSprings[i] = spring{a: s.a, b: s.b, offset: -s.offset, cost: s.cost}
	}
	high := lowest(n, mirroredArcs, mirroredSprings)
	middle := make([]float64, n)
	for i := range middle {
		middle[i] = float64(low[i]-high[i]) / 2
	}
	return middle
}

// lowest returns values for n variables that respect all arcs and cost little, the lowest ones of
// those that cost the same. None is below zero. The arcs must not form a circle.
//
// The values always respect the arcs; that they are the cheapest is given up when it takes too
// long.
func lowest(n int, arcs []arc, springs []spring) []int {
	s := &simplex{main: n, root: n + len(springs)}
	s.value = make([]int, s.root+1)
	// Low values are worth less than anything else: as many variables cost less together than one
	// unit of any cost.
	scale := n + 1
	for _, a := range arcs {
		s.arcs = append(s.arcs, arc{a.tail, a.head, a.length, a.cost * scale})
	}
	for v := range n {
		s.arcs = append(s.arcs, arc{tail: s.root, head: v, cost: 1})
	}
	s.plant()
	// A spring becomes a variable of its own that is below both ends, and as close to them as it
	// can be.
	for i, spring := range springs {
		s.hang(n+i, spring, scale)
	}
	s.improve()
	return s.value[:n]
}

// simplex is the network simplex method: the values follow from a spanning tree of arcs that are as
// short as they may be, and an arc of the tree is exchanged for another one as long as that makes
// the whole cheaper.
type simplex struct {
	main, root int
	arcs       []arc
	value      []int
	tree       []int // indices of arcs

	// What follows is computed from the tree.
	order    []int // the variables, parents first
	parent   []int // the arc that leads to the parent, -1 for the root
	net      []int // what the arcs that leave the branch of a variable cost, less what those cost that enter it
	branch   []bool
	adjacent [][]int
}

func (s *simplex) slack(a arc) int { return s.value[a.head] - s.value[a.tail] - a.length }

// plant gives every main variable the lowest value that the arcs allow, and makes a tree of the
// arcs that enforce it.
func (s *simplex) plant() {
	out, open := make([][]int, s.root+1), make([]int, s.root+1)
	for i, a := range s.arcs {
		out[a.tail] = append(out[a.tail], i)
		open[a.head]++
	}
	enforcing := make([]int, s.root+1)
	ready := []int{s.root}
	done := 0
	for len(ready) > 0 {
		v := ready[0]
		ready = ready[1:]
		done++
		if v != s.root {
			s.tree = append(s.tree, enforcing[v])
		}
		for _, i := range out[v] {
			a := s.arcs[i]
			if lowest := s.value[v] + a.length; lowest > s.value[a.head] || v == s.root {
				s.value[a.head], enforcing[a.head] = max(lowest, s.value[a.head]), i
			}
			if open[a.head]--; open[a.head] == 0 {
				ready = append(ready, a.head)
			}
		}
	}
	if done != s.main+1 {
		panic("layered: the arcs form a circle")
	}
}

// hang adds the variable v of a spring and ties it to the end that it touches.
func (s *simplex) hang(v int, p spring, scale int) {
	toA := arc{tail: v, head: p.a, length: max(-p.offset, 0), cost: p.cost * scale}
	toB := arc{tail: v, head: p.b, length: max(p.offset, 0), cost: p.cost * scale}
	atA, atB := s.value[p.a]-toA.length, s.value[p.b]-toB.length
	s.value[v] = min(atA, atB)
	touching := len(s.arcs)
	if atB < atA {
		touching++
	}
	s.arcs = append(s.arcs, toA, toB)
	s.tree = append(s.tree, touching)
}

// improve exchanges arcs of the tree until nothing is gained any more.
func (s *simplex) improve() {
	n := s.root + 1
	s.parent, s.net, s.branch, s.adjacent = make([]int, n), make([]int, n), make([]bool, n), make([][]int, n)
	standstill := 0
	for budget := 100_000_000; budget > 0; budget -= n + len(s.arcs) {
		s.measure()
		// A tree that is exchanged without a gain could come back; the first of the candidates
		// prevents that.
		leaving := s.leaving(standstill > n)
		if leaving < 0 {
			return
		}
		if s.exchange(leaving) == 0 {
			standstill++
		} else {
			standstill = 0
		}
	}
}

// measure computes what follows from the tree.
func (s *simplex) measure() {
	for v := range s.adjacent {
		s.adjacent[v], s.net[v] = s.adjacent[v][:0], 0
	}
	for _, i := range s.tree {
		a := s.arcs[i]
		s.adjacent[a.tail], s.adjacent[a.head] = append(s.adjacent[a.tail], i), append(s.adjacent[a.head], i)
	}
	for _, a := range s.arcs {
		s.net[a.tail] += a.cost
		s.net[a.head] -= a.cost
	}
	s.order, s.parent[s.root] = append(s.order[:0], s.root), -1
	for at := 0; at < len(s.order); at++ {
		v := s.order[at]
		for _, i := range s.adjacent[v] {
			if i != s.parent[v] {
				child := s.other(i, v)
				s.parent[child] = i
				s.order = append(s.order, child)
			}
		}
	}
	for at := len(s.order) - 1; at > 0; at-- {
		v := s.order[at]
		s.net[s.other(s.parent[v], v)] += s.net[v]
	}
}

func (s *simplex) other(i, v int) int { return s.arcs[i].tail + s.arcs[i].head - v }

// leaving returns the variable whose arc to its parent should leave the tree, -1 if there is none:
// the one that gains most, or the one with the lowest arc.
func (s *simplex) leaving(first bool) int {
	found, best := -1, 0
	for _, v := range s.order[1:] {
		i := s.parent[v]
		cut := s.net[v] // what making the arc longer costs
		if s.arcs[i].head == v {
			cut = -cut
		}
		if cut < 0 && (found < 0 || (first && i < s.parent[found]) || (!first && cut < best)) {
			found, best = v, cut
		}
	}
	return found
}

// exchange replaces the arc between v and its parent, moves the branch at v, and returns by how
// much.
func (s *simplex) exchange(v int) int {
	s.markBranch(v)
	leaves := s.parent[v]
	outward := s.arcs[leaves].tail == v // the arc leads from the branch to the rest
	entering, least := -1, 0
	for i, a := range s.arcs {
		if s.branch[a.tail] == s.branch[a.head] || s.branch[a.head] != outward {
			continue
		}
		if slack := s.slack(a); entering < 0 || slack < least {
			entering, least = i, slack
		}
	}
	if entering < 0 {
		panic("layered: a cost is negative")
	}
	for i := range s.tree {
		if s.tree[i] == leaves {
			s.tree[i] = entering
		}
	}
	move := least
	if outward {
		move = -least
	}
	for _, w := range s.order {
		if s.branch[w] {
			s.value[w] += move
		}
	}
	return least
}

func (s *simplex) markBranch(v int) {
	for _, w := range s.order {
		s.branch[w] = w == v || (s.parent[w] >= 0 && s.branch[s.other(s.parent[w], w)])
	}
}
