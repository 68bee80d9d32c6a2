// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// A chain of workflows is one picture: each in its frame, with edges from one to the next.
func TestChain(t *testing.T) {
	g := &drawing.Graph{}
	b := Begin(g, &g.Root)
	for _, name := range []string{"First", "Second"} {
		b.Add(g.AddCluster(&g.Root, name), outline.Node{Kind: outline.KindAction, Label: "Of" + name}, func(action string) (drawing.Tone, []string) {
			return drawing.Good, []string{action + " is done"}
		})
	}
	b.End(&g.Root)
	if len(g.Edges) != 3 {
		t.Fatalf("%d edges, want those from the beginning over two actions to the end", len(g.Edges))
	}
	for i, c := range g.Root.Clusters {
		if len(c.Nodes) != 1 || g.Edges[i].To != c.Nodes[0].ID || g.Edges[i+1].From != c.Nodes[0].ID {
			t.Errorf("frame %s is not between its neighbors: %v, %v", c.Label, c.Nodes, g.Edges)
		}
	}
	var text strings.Builder
	if err := drawing.Mermaid(&text, g); err != nil || !strings.Contains(text.String(), "OfFirst is done") {
		t.Errorf("the outcome is not drawn (%v):\n%s", err, text.String())
	}
}

// How many actions run at the same time is beside the kind of the workflow.
func TestLimit(t *testing.T) {
	children := []outline.Node{{Kind: outline.KindAction, Label: "A"}, {Kind: outline.KindAction, Label: "B"}}
	for want, n := range map[string]outline.Node{
		"parallel join, at most 2": {Kind: outline.KindParallelJoin, Label: "at most 2", Children: children},
		"graph, at most 2":         {Kind: outline.KindGraph, Label: "at most 2", Children: children, After: [][]int{nil, nil}},
		"graph":                    {Kind: outline.KindGraph, Children: children, After: [][]int{nil, nil}},
	} {
		g := &drawing.Graph{}
		b := Begin(g, &g.Root)
		b.Add(&g.Root, n, nil)
		b.End(&g.Root)
		found := false
		for _, node := range g.Root.Nodes {
			found = found || node.Label == want
		}
		if !found {
			t.Errorf("no node is labeled %s: %+v", want, g.Root.Nodes)
		}
	}
}
