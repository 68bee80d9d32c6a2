// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager draws the controller managers that documents of the language declare: the target,
// the states with what selects them, the actions, and which action reads which state.
//
// It works on parsed documents, not on checked ones, so that a document can be drawn before the Go
// packages that it names exist. An action that names a state which is not declared is drawn with
// that state, marked as missing.
package manager

import (
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// Declared returns the declarations in files, in order.
func Declared(files ...*ast.File) []*ast.Decl {
	var decls []*ast.Decl
	for _, file := range files {
		for _, item := range file.Items {
			if decl, ok := item.(*ast.Decl); ok {
				decls = append(decls, decl)
			}
		}
	}
	return decls
}

// Graph returns the picture of decls, each in a frame of its own.
func Graph(title string, decls ...*ast.Decl) *drawing.Graph {
	g := &drawing.Graph{Title: title, Direction: drawing.LeftRight}
	for _, decl := range decls {
		p := &painter{g: g, frame: g.AddCluster(&g.Root, decl.Name.Text), states: map[string]string{}}
		p.draw(decl)
	}
	return g
}

// A painter draws one declaration.
type painter struct {
	g      *drawing.Graph
	frame  *drawing.Cluster
	target string
	states map[string]string // name to ID
}

func (p *painter) draw(decl *ast.Decl) {
	p.target = p.g.AddNode(p.frame, drawing.Node{Shape: drawing.Head, Tone: drawing.Active, Label: decl.Kind.Text, Details: []string{"target"}})
	states, actions := contents(decl)
	if len(states)+len(actions) > mostAlone {
		p.overview(states, actions)
		return
	}
	for _, s := range states {
		id := p.g.AddNode(p.frame, drawing.Node{Shape: drawing.Store, Tone: drawing.Waiting, Label: stateHeading(s), Details: selectors(s)})
		p.g.Connect(p.target, id)
		if _, declared := p.states[s.Name.Text]; !declared {
			p.states[s.Name.Text] = id
		}
	}
	for _, group := range grouped(actions, len(states)+len(actions) > mostNodes) {
		p.actions(group)
	}
}

// mostNodes is how many states and actions a picture has before it groups actions.
const mostNodes = 24

// mostTogether is how many actions are in one node: their names are lines of its label.
const mostTogether = 4

// grouped puts actions that read the same states together, in the place of the first one, if the
// document is large.
func grouped(actions []*ast.Action, large bool) [][]*ast.Action {
	var groups [][]*ast.Action
	latest := map[string]int{} // by what is read: the last group
	for _, a := range actions {
		key := reads(a)
		i, ok := latest[key]
		if ok && large && len(groups[i]) < mostTogether {
			groups[i] = append(groups[i], a)
			continue
		}
		latest[key] = len(groups)
		groups = append(groups, []*ast.Action{a})
	}
	return groups
}

// reads returns the names of the states that an action reads: the same text for the same states.
func reads(a *ast.Action) string {
	names := make([]string, len(a.Args))
	for i, arg := range a.Args {
		names[i] = arg.Name.Text
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// actions draws actions that read the same after the states that they read, or after the target if
// they read none. One alone has its comment.
func (p *painter) actions(group []*ast.Action) {
	a := group[0]
	node := drawing.Node{Tone: drawing.Good, Label: a.Name.Text, Details: summary(a.Doc)}
	if len(group) > 1 {
		node.Details = nil
	}
	for _, other := range group[1:] {
		node.Label += "\n" + other.Name.Text
	}
	id := p.g.AddNode(p.frame, node)
	if len(a.Args) == 0 {
		p.g.Edges = append(p.g.Edges, drawing.Edge{From: p.target, To: id, Dashed: true})
	}
	for _, arg := range a.Args {
		p.g.Connect(p.state(arg.Name.Text), id)
	}
}

// state returns the ID of a state; one that is not declared is drawn as missing.
func (p *painter) state(name string) string {
	id, declared := p.states[name]
	if !declared {
		id = p.g.AddNode(p.frame, drawing.Node{Shape: drawing.Store, Tone: drawing.Bad, Label: name, Details: []string{"✗ not declared"}})
		p.states[name] = id
	}
	return id
}

func contents(decl *ast.Decl) (states []*ast.State, actions []*ast.Action) {
	for _, section := range decl.Body.Items {
		section, ok := section.(*ast.Section)
		if !ok {
			continue
		}
		for _, item := range section.Body.Items {
			switch item := item.(type) {
			case *ast.State:
				states = append(states, item)
			case *ast.Action:
				actions = append(actions, item)
			}
		}
	}
	return states, actions
}

func stateHeading(s *ast.State) string {
	if s.List {
		return s.Name.Text + " []" + s.Kind.Text
	}
	return s.Name.Text + " " + s.Kind.Text
}

func actionHeading(a *ast.Action) string {
	args := make([]string, len(a.Args))
	for i, arg := range a.Args {
		args[i] = arg.Name.Text
	}
	return a.Name.Text + "(" + strings.Join(args, ", ") + ")"
}

func selectors(s *ast.State) []string {
	var lines []string
	for _, item := range s.Body.Items {
		if selector, ok := item.(*ast.Selector); ok {
			lines = append(lines, selectorText(selector))
		}
	}
	return lines
}

func selectorText(s *ast.Selector) string {
	if !s.HasValue {
		return s.Key.Text
	}
	var b strings.Builder
	b.WriteString(s.Key.Text + "=")
	for _, part := range s.Value.Parts {
		if part.Ref != nil {
			b.WriteString(part.Ref.String())
		} else {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// summary returns the first sentence of a comment, without its slashes.
func summary(doc []ast.Comment) []string {
	words := make([]string, 0, len(doc))
	for _, line := range doc {
		words = append(words, strings.TrimSpace(strings.TrimLeft(line.Text, "/")))
	}
	text := strings.Join(words, " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	if text = strings.TrimSuffix(text, "."); text == "" {
		return nil
	}
	return []string{text}
}
