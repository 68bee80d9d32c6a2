// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

const (
	// mostAlone is how many states and actions a picture has before it becomes an overview: a reader
	// can't follow more lines.
	mostAlone = 150
	// mostGroups is how many groups of actions an overview has before it makes them larger.
	mostGroups = 24
	// mostNames is how many names of a group are written.
	mostNames = 6
)

// A bundle is the states of one kind, or the actions that read the same kinds.
type bundle struct {
	key   string
	names []string
	reads []string // the keys of states; for actions only
}

// details are the first names of a bundle, and how many there are beside them.
func (b *bundle) details() []string {
	if more := len(b.names) - mostNames; more > 1 {
		return []string{strings.Join(b.names[:mostNames], ", "), fmt.Sprintf("and %d more", more)}
	}
	return []string{strings.Join(b.names, ", ")}
}

// A bundler puts what has the same key into one bundle, in the order in which they come.
type bundler struct {
	all   []*bundle
	byKey map[string]*bundle
}

func (b *bundler) add(key, name string) *bundle {
	of := b.byKey[key]
	if of == nil {
		of = &bundle{key: key}
		b.all = append(b.all, of)
		b.byKey[key] = of
	}
	of.names = append(of.names, name)
	return of
}

func newBundler() *bundler { return &bundler{byKey: map[string]*bundle{}} }

// overview draws a document that is too large for a node for each name: the states in groups by
// their kind, and the actions in groups by the kinds that they read.
func (p *painter) overview(states []*ast.State, actions []*ast.Action) {
	p.frame.Label = fmt.Sprintf("%s: %d states, %d actions, by kind", p.frame.Label, len(states), len(actions))
	kinds := newBundler()
	keys := map[string]string{} // of the group of a state, by its name
	for _, s := range states {
		key := "× " + s.Kind.Text // no name of a state that is not declared
		if s.List {
			key = "× []" + s.Kind.Text
		}
		if keys[s.Name.Text] == "" {
			keys[s.Name.Text] = key
		}
		kinds.add(key, s.Name.Text)
	}
	for _, b := range kinds.all {
		p.states[b.key] = p.g.AddNode(p.frame, drawing.Node{
			Shape: drawing.Store, Tone: drawing.Waiting, Label: fmt.Sprintf("%d %s", len(b.names), b.key), Details: b.details(),
		})
		p.g.Connect(p.target, p.states[b.key])
	}
	for _, b := range bundled(actions, keys) {
		node := drawing.Node{Tone: drawing.Good, Label: fmt.Sprintf("%d actions", len(b.names)), Details: b.details()}
		if len(b.names) == 1 {
			node.Label, node.Details = b.names[0], nil
		}
		id := p.g.AddNode(p.frame, node)
		if len(b.reads) == 0 {
			p.g.Edges = append(p.g.Edges, drawing.Edge{From: p.target, To: id, Dashed: true})
		}
		for _, key := range b.reads {
			p.g.Connect(p.state(key), id)
		}
	}
}

// bundled puts actions together that read states of the same groups or, if these are many, whose
// first state is of the same group. A state that is not declared is a group of its own.
func bundled(actions []*ast.Action, keys map[string]string) []*bundle {
	same, first := newBundler(), newBundler()
	for _, a := range actions {
		var reads []string
		for _, arg := range a.Args {
			reads = append(reads, cmp.Or(keys[arg.Name.Text], arg.Name.Text))
		}
		begins := ""
		if len(reads) > 0 {
			begins = reads[0]
		}
		slices.Sort(reads)
		reads = slices.Compact(reads)
		for _, b := range []*bundle{same.add(strings.Join(reads, " "), a.Name.Text), first.add(begins, a.Name.Text)} {
			b.reads = append(b.reads, reads...)
			slices.Sort(b.reads)
			b.reads = slices.Compact(b.reads)
		}
	}
	if len(same.all) > mostGroups {
		return first.all
	}
	return same.all
}
