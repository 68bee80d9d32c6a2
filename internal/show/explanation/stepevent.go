// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// stepEvent applies an event of a step or an action to steps, and reports whether it was one.
func stepEvent(steps []Step, e journal.Entry) ([]Step, bool) {
	switch ev := e.Event.(type) {
	case journal.StepBegan:
		if ev.Phase == journal.PhasePost { // it matters only if it fails
			return steps, true
		}
		return put(steps, Step{Name: ev.Step, Phase: ev.Phase, State: StateRunning}), true
	case journal.StepEnded:
		ended := stepOf(ev.Step, ev.Phase, ev.Outcome)
		if ev.Phase == journal.PhasePost && ended.passed() {
			return steps, true
		}
		if i := slices.IndexFunc(steps, func(s Step) bool { return s.Name == ev.Step }); i >= 0 {
			ended.Actions = steps[i].Actions
			if ev.Phase == journal.PhasePost && !steps[i].passed() { // the first failure is why it did not pass
				return steps, true
			}
		}
		return put(steps, ended), true
	case journal.StepLate:
		if i := slices.IndexFunc(steps, func(s Step) bool { return s.Name == ev.Step && s.State == StateRunning }); i >= 0 {
			steps[i].Late = ev.String()
		}
		return steps, true
	case journal.StepSkipped:
		state, by := StateNotNeeded, []string(nil)
		if ev.After != "" {
			state, by = StateNotReached, []string{ev.After}
		}
		return put(steps, Step{Name: ev.Step, State: state, By: by}), true
	case journal.ActionBegan:
		return inStep(steps, ev.Step, Step{Name: ev.Action, State: StateRunning}), true
	case journal.ActionEnded:
		return inStep(steps, ev.Step, stepOf(ev.Action, "", ev.Outcome)), true
	case journal.ActionBlocked:
		return inStep(steps, ev.Step, Step{Name: ev.Action, State: StateBlocked, By: ev.By}), true
	case journal.Kept:
		for _, child := range ev.Children {
			steps = inStep(steps, ev.Step, stepOfChild(child, e.Object.Namespace))
		}
		return steps, true
	default:
		return steps, false
	}
}

// stepOfChild returns an object of a set, as an action of the step that keeps it. It has its
// namespace if its owner is in another one.
func stepOfChild(child journal.Child, namespace string) Step {
	obj := child.Object
	s := Step{Name: obj.Kind + " " + obj.Name, Object: obj}
	if obj.Namespace != namespace && obj.Namespace != "" {
		s.Name = obj.Kind + " " + obj.Namespace + "/" + obj.Name
	}
	switch child.State {
	case journal.ChildReady:
		s.State = StateReady
	case journal.ChildNotReady:
		s.State, s.Lacks = StateNotReady, child.Text
	case journal.ChildFailed:
		s.State, s.Error, s.Class, s.Remedy = StateFailed, child.Text, child.Reason, child.Remedy
	case journal.ChildWaiting:
		s.State, s.Waits = StateWaiting, []journal.Wait{{For: child.Text}}
	case journal.ChildBlocked:
		s.State, s.By = StateBlocked, []string{"an earlier wave"}
	}
	return s
}

func stepOf(name string, phase journal.Phase, o journal.Outcome) Step {
	s := Step{Name: name, Phase: phase, State: StateDone, Waits: slices.Clone(o.Waits), After: o.RequeueAfter}
	switch {
	case o.Err != nil:
		s.State, s.Error, s.Class, s.Remedy = StateFailed, o.Err.Error(), o.Class, cmp.Or(o.Remedy, failure.RemedyOf(failure.Class(o.Class)))
	case o.Stalled != "":
		s.State, s.Stalled = StateStalled, o.Stalled
	case len(o.Waits) > 0:
		s.State = StateWaiting
	}
	return s
}

// put replaces the step of that name, or adds it.
func put(steps []Step, s Step) []Step {
	if i := slices.IndexFunc(steps, func(o Step) bool { return o.Name == s.Name }); i >= 0 {
		steps[i] = s
		return steps
	}
	return append(steps, s)
}

func inStep(steps []Step, name string, action Step) []Step {
	i := slices.IndexFunc(steps, func(o Step) bool { return o.Name == name })
	if i < 0 {
		steps = append(steps, Step{Name: name, State: StateRunning})
		i = len(steps) - 1
	}
	steps[i].Actions = put(steps[i].Actions, action)
	return steps
}

// settle finds out, when a reconcile has ended, which steps blocked others: the journal has the
// step that ran last, and in a group that may be another one.
func settle(steps []Step, ev journal.Finished, deleting bool) {
	notReached := func(s Step) bool { return s.State == StateNotReached }
	cut := slices.ContainsFunc(steps, notReached) || deleting && (ev.Result == journal.ResultWaiting || ev.Result == journal.ResultStalled)
	stopped := func(s Step) bool { return !s.passed() }
	if cut && !slices.ContainsFunc(steps, stopped) {
		// Nothing failed and nothing waits: the last step that asked for a time did so to run
		// again.
		for i := range slices.Backward(steps) {
			if steps[i].State == StateDone && steps[i].After > 0 {
				steps[i].State = StateRequeued
				break
			}
		}
	}
	var by []string
	for i := range steps {
		switch s := &steps[i]; {
		case stopped(*s):
			by = append(by, s.Name)
		case s.State == StateNotReached && len(by) > 0:
			s.By = slices.Clone(by)
		}
	}
}

// outsideOf returns what of an error no step has returned.
func outsideOf(steps []Step, err error) string {
	var texts []string
	for _, cause := range failure.Causes(err) {
		text := cause.Error()
		if !slices.ContainsFunc(steps, func(s Step) bool {
			return s.State == StateFailed && (strings.Contains(text, s.Error) || strings.Contains(s.Error, text))
		}) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}
