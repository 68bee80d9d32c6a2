// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// document returns a manager with states of the kinds Pod, []Secret and []Job, and actions that
// read one to three of them; the last one reads Missing.
func document(states, actions int) string {
	var b strings.Builder
	b.WriteString("decl Large for Deployment {\n    state {\n")
	for i := range states {
		fmt.Fprintf(&b, "        s%d %s {\n            labels/app=a\n        }\n", i, []string{"Pod", "[]Secret", "[]Job"}[i%3])
	}
	b.WriteString("    }\n    action {\n")
	for i := range actions - 1 {
		names := []string{fmt.Sprintf("s%d", i%states), fmt.Sprintf("s%d", i*7%states), fmt.Sprintf("s%d", i*3%states)}[:1+i%3]
		fmt.Fprintf(&b, "        Act%d(%s)\n", i, strings.Join(names, ", "))
	}
	b.WriteString("        Last(Pod)\n    }\n}\n")
	return b.String()
}

func graphOf(t *testing.T, text string) *drawing.Graph {
	t.Helper()
	file, mistakes := parser.Parse("large.ctrlkit", []byte(text))
	if mistakes.HasErrors() {
		t.Fatal(mistakes)
	}
	return Graph("", Declared(file)...)
}

// A document of hundreds of states is drawn with a node for each kind, and a smaller one with a
// node for each state.
func TestOverview(t *testing.T) {
	g := graphOf(t, document(300, 100))
	frame := g.Root.Clusters[0]
	if want := "Large: 300 states, 100 actions, by kind"; frame.Label != want {
		t.Errorf("the frame is %q, want %q", frame.Label, want)
	}
	nodes, actions, labels := map[string]drawing.Node{}, 0, []string{}
	for _, n := range frame.Nodes {
		nodes[n.ID] = n
		switch n.Tone {
		case drawing.Waiting, drawing.Bad:
			labels = append(labels, n.Label+": "+strings.Join(n.Details, " "))
		case drawing.Good:
			actions++
		}
	}
	want := []string{
		"100 × Pod: s0, s3, s6, s9, s12, s15 and 94 more", "100 × []Secret: s1, s4, s7, s10, s13, s16 and 94 more", "100 × []Job: s2, s5, s8, s11, s14, s17 and 94 more",
		"Pod: ✗ not declared", // the name of a state, not the kind
	}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("the states (-want +got):\n%s", diff)
	}
	if actions < 4 || actions > mostGroups {
		t.Errorf("%d groups of actions", actions)
	}
	for _, e := range g.Edges {
		if nodes[e.From].Label == "" || nodes[e.To].Label == "" {
			t.Errorf("the edge %+v leads nowhere", e)
		}
	}
	if small := graphOf(t, document(100, 50)).Root.Clusters[0]; small.Label != "Large" || len(small.Nodes) < 101 {
		t.Errorf("a smaller document is drawn as %q with %d nodes", small.Label, len(small.Nodes))
	}
}

// Actions that read many combinations of kinds are in larger groups.
func TestOverviewOfManyCombinations(t *testing.T) {
	var b strings.Builder
	b.WriteString("decl Large for Deployment {\n    state {\n")
	for i := range 100 {
		fmt.Fprintf(&b, "        s%d Kind%d {\n            labels/app=a\n        }\n", i, i%10)
	}
	b.WriteString("    }\n    action {\n        None()\n")
	for i := range 100 {
		fmt.Fprintf(&b, "        Act%d(s%d, s%d)\n", i, i%10, i/10)
	}
	b.WriteString("    }\n}\n")
	actions := 0
	for _, n := range graphOf(t, strings.ReplaceAll(b.String(), "(s0, s0)", "(s0)")).Root.Clusters[0].Nodes {
		if n.Tone == drawing.Good {
			actions++
		}
	}
	if actions != 11 {
		t.Errorf("%d groups of actions, want one for each first kind, and one for none", actions)
	}
}
