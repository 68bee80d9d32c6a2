// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package drawing

import "strconv"

// A Graph is a picture: a tree of clusters that hold nodes, and the edges between the nodes.
//
// The zero value is an empty picture that runs from top to bottom.
type Graph struct {
	// Title names the picture for people who cannot see it. It is not drawn.
	Title     string
	Direction Direction
	// Root holds everything; its own label is not drawn.
	Root  Cluster
	Edges []Edge

	lastID int
}

// A Direction is the direction in which a picture is read.
type Direction int

const (
	// TopDown is for workflows: what comes first stands on top.
	TopDown Direction = iota
	// LeftRight is for tables of things that refer to each other.
	LeftRight
)

// A Cluster is a frame around nodes and further frames.
type Cluster struct {
	// ID is unique among the clusters and nodes of a graph.
	ID       string
	Label    string
	Dashed   bool
	Nodes    []Node
	Clusters []*Cluster
}

// A Node is one thing in a picture.
type Node struct {
	// ID is unique among the clusters and nodes of a graph.
	ID    string
	Shape Shape
	Tone  Tone
	Label string
	// Details stand below the label in smaller letters.
	Details []string
}

// Lines returns the label of n and its details, broken into lines.
func (n *Node) Lines() (label, details []string) {
	width := labelWidth
	if n.Shape == Decision {
		width = decisionWidth
	}
	for _, detail := range n.Details {
		details = append(details, Lines(detail, detailWidth, detailLines)...)
	}
	return Lines(n.Label, width, labelLines), details
}

// Class names the look of n in SVG and Mermaid. Dots and forks have no tone and look the same on
// every background.
func (n *Node) Class() string {
	switch n.Shape {
	case Start, End, Meet:
		return "dot"
	case Fork:
		return "fork"
	default:
		return n.Tone.Look().Class
	}
}

// An Edge leads from one node to another.
type Edge struct {
	// From and To are the IDs of nodes.
	From, To string
	Label    string
	Dashed   bool
	// FromCluster is the ID of a cluster around From when the edge shall begin at its frame.
	FromCluster string
}

// A Shape says what kind of thing a node is.
type Shape int

const (
	// Box is an action: something that is done.
	Box Shape = iota
	// Decision is a question with the answers yes and no.
	Decision
	// Start is where a workflow begins.
	Start
	// End is where a workflow ends.
	End
	// Fork is where a workflow splits; its label says how the branches run.
	Fork
	// Meet is where branches meet again. It has no label.
	Meet
	// Store is something that is read.
	Store
	// Head is the thing that all the others are about.
	Head
)

// NewID returns an identifier that no node or cluster of this graph has.
func (g *Graph) NewID() string {
	g.lastID++
	return "n" + strconv.Itoa(g.lastID)
}

// Connect adds a plain edge.
func (g *Graph) Connect(from, to string) {
	g.Edges = append(g.Edges, Edge{From: from, To: to})
}

// AddCluster puts a new frame into c and returns it.
func (g *Graph) AddCluster(c *Cluster, label string) *Cluster {
	inner := &Cluster{ID: g.NewID(), Label: label}
	c.Clusters = append(c.Clusters, inner)
	return inner
}

// AddNode puts a node into c, gives it an ID, and returns that.
func (g *Graph) AddNode(c *Cluster, n Node) string {
	n.ID = g.NewID()
	c.Nodes = append(c.Nodes, n)
	return n.ID
}
