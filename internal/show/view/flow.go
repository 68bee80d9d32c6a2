// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"html/template"
	"reflect"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/flow"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/layered"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A workflowKey names the step that runs a workflow.
type workflowKey struct{ controller, step string }

// Limits of the workflows that are kept: shapes of one step, steps, and actions that are drawn.
const (
	mostShapes    = 4
	mostWorkflows = 200
	mostActions   = 60
)

// workflowBegan keeps the shape of a workflow. It describes one while there are viewers, and the
// first one of each step without.
func (a *Activity) workflowBegan(entry journal.Entry, event journal.WorkflowBegan) {
	key := workflowKey{entry.Controller, event.Step}
	a.mu.Lock()
	known, all := len(a.workflows[key]) > 0, len(a.workflows)
	a.mu.Unlock()
	if known && a.table.Load() == nil || !known && all >= mostWorkflows {
		return
	}
	shape := event.Workflow.Describe()
	a.mu.Lock()
	defer a.mu.Unlock()
	shapes := a.workflows[key]
	same := slices.IndexFunc(shapes, func(o outline.Node) bool { return reflect.DeepEqual(o, shape) })
	switch {
	case same == 0:
		return
	case same > 0:
		shapes = slices.Delete(slices.Clone(shapes), same, same+1)
	}
	shapes = append([]outline.Node{shape}, shapes...) // readers have the old slice
	a.workflows[key] = shapes[:min(len(shapes), mostShapes)]
}

// workflow returns the latest shape of a workflow that has all of some actions.
func (a *Activity) workflow(controller string, s *explanation.Step) (outline.Node, bool) {
	a.mu.Lock()
	shapes := a.workflows[workflowKey{controller, s.Name}]
	a.mu.Unlock()
	for _, shape := range shapes {
		names := map[string]bool{}
		if size := namesIn(shape, names); size > 0 && size <= mostActions &&
			!slices.ContainsFunc(s.Actions, func(action explanation.Step) bool { return !names[action.Name] }) {
			return shape, true
		}
	}
	return outline.Node{}, false
}

// namesIn adds what hooks call the parts of a workflow, and returns the number of its actions.
func namesIn(n outline.Node, names map[string]bool) int {
	names[n.String()] = true
	if flow.IsAction(n) {
		return 1
	}
	size := 0
	for _, child := range n.Children {
		size += namesIn(child, names)
	}
	return size
}

// picture draws the steps of a controller, with the workflows in them, and what became of each: nil
// if the list of steps says as much.
func (v *viewing) picture(x *explanation.Explanation, c *explanation.Controller) template.HTML {
	g := &drawing.Graph{Title: "Steps of controller " + c.Name + ": " + inWordsOf(c.Steps), Direction: drawing.LeftRight}
	chain := flow.Begin(g, &g.Root)
	drawn := false
	for i := range c.Steps {
		s := &c.Steps[i]
		if shape, ok := v.server.options.Activity.workflow(c.Name, s); ok {
			chain.Add(g.AddCluster(&g.Root, explanation.OneLine(s.Name)), shape, outcomesOf(x, s, shape))
			drawn = true
			continue
		}
		chain.Add(&g.Root, outline.Node{Kind: outline.KindAction, Label: explanation.OneLine(s.Name)}, func(string) (drawing.Tone, []string) {
			return look(s)
		})
	}
	chain.End(&g.Root)
	if !drawn && len(c.Steps) < 2 || len(c.Steps) > mostActions {
		return ""
	}
	var svg strings.Builder
	if err := layered.Fragment(&svg, g); err != nil {
		return ""
	}
	return template.HTML(svg.String()) //nolint:gosec // it escapes what it writes
}

// inWordsOf says how steps are, for who can't see the picture.
func inWordsOf(steps []explanation.Step) string {
	texts := make([]string, 0, len(steps))
	for i := range steps {
		texts = append(texts, steps[i].Name+" "+steps[i].State)
	}
	return explanation.OneLine(strings.Join(texts, ", "))
}

// outcomesOf returns what became of the actions of a workflow. That a part of a graph is blocked
// holds for each action in it.
func outcomesOf(x *explanation.Explanation, s *explanation.Step, shape outline.Node) flow.Outcome {
	of := map[string]*explanation.Step{}
	for i := range s.Actions {
		of[s.Actions[i].Name] = &s.Actions[i]
	}
	var inherit func(n outline.Node, blocked *explanation.Step)
	inherit = func(n outline.Node, blocked *explanation.Step) {
		if flow.IsAction(n) {
			if of[n.Label] == nil && blocked != nil {
				of[n.Label] = blocked
			}
			return
		}
		if part := of[n.String()]; part != nil {
			blocked = part
		}
		for _, child := range n.Children {
			inherit(child, blocked)
		}
	}
	inherit(shape, nil)
	return func(action string) (drawing.Tone, []string) {
		if a := of[action]; a != nil {
			return look(a)
		}
		return drawing.Faded, []string{"○ not run"}
	}
}

// look returns how a step or an action looks in a picture. It says nothing that changes with the
// time: the picture is made again only if something happens.
func look(s *explanation.Step) (drawing.Tone, []string) {
	text := s.State
	switch {
	case s.Again:
		return drawing.Active, []string{"▶ runs again"}
	case s.State == explanation.StateFailed:
		text = "failed: " + s.Error
	case s.State == explanation.StateStalled:
		text = "stalled: " + s.Stalled
	case s.State == explanation.StateWaiting:
		waits := make([]string, 0, len(s.Waits))
		for _, w := range s.Waits {
			waits = append(waits, w.For)
		}
		text = "waits for " + strings.Join(waits, ", ")
	case s.State == explanation.StateBlocked && len(s.By) > 0:
		text = "blocked by " + strings.Join(s.By, ", ")
	}
	return tonesOfStates[s.State], []string{s.Mark() + " " + explanation.OneLine(text)}
}

var tonesOfStates = map[string]drawing.Tone{
	explanation.StateDone: drawing.Good, explanation.StateReady: drawing.Good, explanation.StateFailed: drawing.Bad, explanation.StateStalled: drawing.Bad,
	explanation.StateWaiting: drawing.Waiting, explanation.StateNotReady: drawing.Waiting, explanation.StateRequeued: drawing.Again,
	explanation.StateRunning: drawing.Active, explanation.StateNotNeeded: drawing.Faded, explanation.StateNotReached: drawing.Blocked, explanation.StateBlocked: drawing.Blocked,
}
