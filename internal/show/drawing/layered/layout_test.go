// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// anyGraph draws any graph that the type can express: nested and empty clusters, nodes of all
// shapes, circles, edges from a node to itself, edges that occur twice, and edges from frames that
// hold neither or both of their ends.
func anyGraph() *rapid.Generator[*drawing.Graph] {
	label := rapid.SampledFrom([]string{"", "a", "yes", "two\nlines", "a label of several words that is broken", strings.Repeat("wide", 30), "数据库已经准备好了", "<&>"})
	return rapid.Custom(func(t *rapid.T) *drawing.Graph {
		g := &drawing.Graph{Title: "any", Direction: rapid.SampledFrom([]drawing.Direction{drawing.TopDown, drawing.LeftRight}).Draw(t, "direction")}
		clusters := []*drawing.Cluster{&g.Root}
		for range rapid.IntRange(0, 6).Draw(t, "clusters") {
			in := rapid.SampledFrom(clusters).Draw(t, "cluster")
			c := g.AddCluster(in, label.Draw(t, "frame"))
			c.Dashed = rapid.Bool().Draw(t, "dashed")
			clusters = append(clusters, c)
		}
		var ids []string
		for range rapid.IntRange(0, 14).Draw(t, "nodes") {
			n := drawing.Node{Label: label.Draw(t, "label"), Shape: drawing.Shape(rapid.IntRange(0, int(drawing.Head)).Draw(t, "shape"))}
			if rapid.Bool().Draw(t, "detailed") {
				n.Details = []string{label.Draw(t, "detail")}
			}
			n.Tone = drawing.Tone(rapid.IntRange(0, int(drawing.Bad)).Draw(t, "tone"))
			ids = append(ids, g.AddNode(rapid.SampledFrom(clusters).Draw(t, "home"), n))
		}
		if len(ids) == 0 {
			return g
		}
		circles := rapid.Bool().Draw(t, "circles")
		for range rapid.IntRange(0, 20).Draw(t, "edges") {
			from, to := rapid.IntRange(0, len(ids)-1).Draw(t, "from"), rapid.IntRange(0, len(ids)-1).Draw(t, "to")
			if !circles {
				if from == to {
					continue
				}
				from, to = min(from, to), max(from, to)
			}
			e := drawing.Edge{From: ids[from], To: ids[to], Dashed: rapid.Bool().Draw(t, "dashed")}
			if rapid.IntRange(0, 3).Draw(t, "labeled") == 0 {
				e.Label = label.Draw(t, "edge")
			}
			if rapid.IntRange(0, 3).Draw(t, "framed") == 0 {
				e.FromCluster = rapid.SampledFrom(clusters).Draw(t, "origin").ID
			}
			g.Edges = append(g.Edges, e)
		}
		return g
	})
}

// A rectangle is where something is: across and along the layers.
type rectangle struct {
	what     string
	from, to place
}

const tolerance = 0.01

func (r rectangle) overlaps(s rectangle) bool {
	return r.from.across < s.to.across-tolerance && s.from.across < r.to.across-tolerance &&
		r.from.along < s.to.along-tolerance && s.from.along < r.to.along-tolerance
}

func (r rectangle) contains(s rectangle) bool {
	return r.from.across <= s.from.across+tolerance && s.to.across <= r.to.across+tolerance &&
		r.from.along <= s.from.along+tolerance && s.to.along <= r.to.along+tolerance
}

func (r rectangle) String() string { return fmt.Sprintf("%s at %v to %v", r.what, r.from, r.to) }

func (l *layout) nodes() []*cell {
	var nodes []*cell
	for _, c := range l.cells {
		if c.node != nil {
			nodes = append(nodes, c)
		}
	}
	return nodes
}

func (l *layout) box(c *cell) rectangle {
	half, center := float64(c.half), l.center(c)
	return rectangle{"node " + c.node.ID, place{c.axis - half, center - float64(c.tall)/2}, place{c.axis + half, center + float64(c.tall)/2}}
}

func (f *frame) box() rectangle { return rectangle{"frame " + f.cluster.ID, f.from, f.to} }

// labels returns where the labels of the edges stand.
func (l *layout) labels() []rectangle {
	var all []rectangle
	for _, e := range l.edges {
		if e.labelCell == nil {
			continue
		}
		c := e.labelCell
		from, to := place{c.axis - float64(c.before), l.center(c) - float64(c.length)/2}, place{c.axis + float64(c.after), l.center(c) + float64(c.length)/2}
		all = append(all, rectangle{"label of " + e.From + " to " + e.To, from, to})
	}
	return all
}

func mustLay(t *rapid.T, g *drawing.Graph) *layout {
	l, err := lay(g)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNothingOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustLay(t, anyGraph().Draw(t, "graph"))
		all := l.labels()
		for _, c := range l.nodes() {
			all = append(all, l.box(c))
			if c.loop != nil {
				from, to := place{c.axis + float64(c.half), l.center(c) - float64(c.length)/2}, place{c.axis + float64(c.after), l.center(c) + float64(c.length)/2}
				all = append(all, rectangle{"loop at node " + c.node.ID, from, to})
			}
		}
		picture := rectangle{"picture", place{}, l.size}
		for i, a := range all {
			if !picture.contains(a) {
				t.Fatalf("%v is not in the %v", a, picture)
			}
			for _, b := range all[:i] {
				if a.overlaps(b) {
					t.Fatalf("%v overlaps %v", a, b)
				}
			}
		}
	})
}

func TestFramesHoldTheirNodesAndNoOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustLay(t, anyGraph().Draw(t, "graph"))
		for i, f := range l.frames {
			for _, c := range l.nodes() {
				if box := l.box(c); f.holds(c) && !f.box().contains(box) {
					t.Fatalf("%v is not in its %v", box, f.box())
				} else if !f.holds(c) && f.box().overlaps(box) {
					t.Fatalf("%v is in the foreign %v", box, f.box())
				}
			}
			if f.parent != l.root && !f.parent.box().contains(f.box()) {
				t.Fatalf("%v is not in its %v", f.box(), f.parent.box())
			}
			for _, other := range l.frames[:i] {
				if other.parent == f.parent && other.box().overlaps(f.box()) {
					t.Fatalf("%v overlaps %v", f.box(), other.box())
				}
			}
			across, along := f.to.across-f.from.across, f.to.along-f.from.along
			if l.graph.Direction == drawing.LeftRight {
				across, along = along, across
			}
			if across < float64(f.labelWidth)+padding || along < float64(f.labelHeight)+padding {
				t.Fatalf("%v is too small for its label %q", f.box(), f.label)
			}
		}
	})
}

// points returns points along a segment, as it is drawn.
func (s segment) points() []place {
	var all []place
	for i := range 21 {
		u := float64(i) / 20
		// A cubic curve whose inner points are half of the way along the layers.
		across := s.from.across*(1-u)*(1-u)*(1+2*u) + s.to.across*u*u*(3-2*u)
		middle := (s.from.along + s.to.along) / 2
		along := s.from.along*(1-u)*(1-u)*(1-u) + 3*middle*u*(1-u) + s.to.along*u*u*u
		all = append(all, place{across, along})
	}
	return all
}

func TestEdgesTouchNoOtherNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustLay(t, anyGraph().Draw(t, "graph"))
		texts := l.labels()
		for _, f := range l.frames {
			if l.graph.Direction == drawing.TopDown && f.labelHeight > 0 {
				to := place{f.from.across + padding + float64(f.labelWidth), f.from.along + 6 + float64(f.labelHeight)}
				texts = append(texts, rectangle{"label of " + f.cluster.ID, place{f.from.across + padding, f.from.along + 6}, to})
			}
		}
		for _, e := range l.edges {
			way := l.route(e)
			for _, s := range way {
				for _, at := range s.points() {
					point := rectangle{"edge from " + e.From + " to " + e.To, at, at}
					for _, c := range l.nodes() {
						if c.node.ID != e.From && c.node.ID != e.To && l.box(c).overlaps(point) {
							t.Fatalf("%v touches %v", point, l.box(c))
						}
					}
					for _, text := range texts {
						if text.overlaps(point) && !strings.HasPrefix(text.what, "label of "+e.From+" to "+e.To) {
							t.Fatalf("%v crosses %v", point, text)
						}
					}
				}
			}
		}
	})
}

// An edge begins at its node or its frame, ends at its node, and is in one piece.
func TestEdgesConnect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustLay(t, anyGraph().Draw(t, "graph"))
		for _, e := range l.edges {
			upper, lower := e.cells[0], e.cells[len(e.cells)-1]
			if lower.layer <= upper.layer {
				t.Fatalf("edge from %s to %s leads from layer %d to layer %d", e.From, e.To, upper.layer, lower.layer)
			}
			if ids := []string{upper.node.ID, lower.node.ID}; !e.reversed && !cmp.Equal(ids, []string{e.From, e.To}) {
				t.Fatalf("edge from %s to %s connects %v", e.From, e.To, ids)
			}
			way := l.route(e)
			for i, s := range way {
				if i > 0 && way[i-1].to != s.from {
					t.Fatalf("edge from %s to %s is broken: %v", e.From, e.To, way)
				}
				if s.to.along < s.from.along {
					t.Fatalf("edge from %s to %s leads back: %v", e.From, e.To, way)
				}
			}
			begin, end := way[0].from, way[len(way)-1].to
			if want := l.border(lower, end.across, -1); end.along != want || !l.box(lower).contains(rectangle{"", end, end}) {
				t.Fatalf("edge from %s to %s ends at %v, not at %v", e.From, e.To, end, l.box(lower))
			}
			outline := l.box(upper)
			if e.origin != nil {
				outline = e.origin.box()
			}
			if !outline.contains(rectangle{"", begin, begin}) {
				t.Fatalf("edge from %s to %s begins at %v, not at %v", e.From, e.To, begin, outline)
			}
		}
	})
}

// Text has room in its shape, whatever it says.
func TestTextIsInItsShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := mustLay(t, anyGraph().Draw(t, "graph"))
		for _, c := range l.nodes() {
			width, height := 2*c.half, c.tall
			if l.graph.Direction == drawing.LeftRight {
				width, height = height, width
			}
			w, h := float64(c.text.width())/float64(width), float64(c.text.height())/float64(height)
			if w > 1 || h > 1 || (c.node.Shape == drawing.Decision && w+h > 1) {
				t.Fatalf("the text of %v takes %.2f of its width and %.2f of its height", l.box(c), w, h)
			}
			if widest(c.text.label, c.text.size) > 48*15 {
				t.Fatalf("the label is %d wide", c.text.width())
			}
		}
	})
}

func TestSameDrawingSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph().Draw(t, "graph")
		if diff := cmp.Diff(string(render(t, g)), string(render(t, g))); diff != "" {
			t.Fatalf("the second drawing differs from the first (-first +second):\n%s", diff)
		}
	})
}

// What forks and meets again needs no crossings, and stands in the order in which it was added.
func TestBranchesKeepTheirOrder(t *testing.T) {
	g := &drawing.Graph{}
	fork := g.AddNode(&g.Root, drawing.Node{Shape: drawing.Fork, Label: "join"})
	var branches [3]string
	for i := range branches {
		branches[i] = g.AddNode(&g.Root, drawing.Node{Label: "branch"})
		g.Connect(fork, branches[i])
	}
	deep := g.AddNode(&g.Root, drawing.Node{Label: "deep"})
	g.Connect(branches[1], deep)
	meet := g.AddNode(&g.Root, drawing.Node{Shape: drawing.Meet})
	for _, id := range []string{branches[0], deep, branches[2]} {
		g.Connect(id, meet)
	}
	l, err := lay(g)
	if err != nil {
		t.Fatal(err)
	}
	if n := (&ordering{l}).crossings(); n != 0 {
		t.Errorf("%d crossings, want none", n)
	}
	axes := map[string]float64{}
	for _, c := range l.nodes() {
		axes[c.node.ID] = c.axis
	}
	if !(axes[branches[0]] < axes[branches[1]] && axes[branches[1]] < axes[branches[2]]) {
		t.Errorf("the branches do not stand in order: %v", axes)
	}
	if axes[fork] != axes[branches[1]] || axes[deep] != axes[fork] || axes[meet] != axes[fork] {
		t.Errorf("the middle is not straight: %v", axes)
	}
}

func TestUnknownEndsAreErrors(t *testing.T) {
	for _, test := range []struct {
		name, want string
		edge       drawing.Edge
	}{
		{"from", `no node "x"`, drawing.Edge{From: "x", To: "n1"}},
		{"to", `no node "y"`, drawing.Edge{From: "n1", To: "y"}},
		{"cluster", `no cluster "z"`, drawing.Edge{From: "n1", To: "n1", FromCluster: "z"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &drawing.Graph{}
			g.AddNode(&g.Root, drawing.Node{})
			g.Edges = append(g.Edges, test.edge)
			if err := SVG(&bytes.Buffer{}, g); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one that says %s", err, test.want)
			}
		})
	}
}
