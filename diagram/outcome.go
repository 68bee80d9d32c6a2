// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// An outcome is how one action ended, or how far it got.
type outcome struct {
	// Action is the description of the action.
	Action string
	State  state
	// Runs counts how often the action was begun.
	Runs int
	// Err is what failed, nil unless State is stateFailed.
	Err error
	// Waits are what the action waits for.
	Waits []ctrlkit.Waiting
	// BlockedBy names the actions that held this one back.
	BlockedBy []string
	// RequeueAfter is the time after which the action asked to be run again, zero if it did not.
	RequeueAfter time.Duration
}

// A state is how far an action got.
type state int

const (
	// stateNotRun is the state of an action that was not reached.
	stateNotRun state = iota
	// stateRunning is the state of an action that has begun and not ended.
	stateRunning
	// stateDone is the state of an action that passed: the workflow continued.
	stateDone
	// stateExited is the state of an action that ended its branch of the workflow without a reason.
	stateExited
	// stateRequeued is the state of an action that ended its branch and asked to be run again.
	stateRequeued
	// stateWaiting is the state of an action that waits for something.
	stateWaiting
	// stateBlocked is the state of an action that was held back because others did not pass.
	stateBlocked
	// stateFailed is the state of an action that returned an error.
	stateFailed

	stateCount
)

// outcomes are the outcomes of the actions of a workflow, in the order in which the actions first
// began or were blocked. Actions are identified by their descriptions alone, because a hook
// receives nothing else.
type outcomes []outcome

// of returns the outcome of an action; for one that is not among them, that it has not run.
func (o outcomes) of(action string) outcome {
	if i := o.index(action); i >= 0 {
		return o[i]
	}
	return outcome{Action: action}
}

// spread returns o for the actions that are drawn: what a graph records for one of its nodes, that
// it is blocked, holds for every action in that node.
func (o outcomes) spread(n outline.Node) outcomes {
	all := slices.Clone(o)
	var visit func(n outline.Node)
	visit = func(n outline.Node) {
		if isAction(n) {
			return
		}
		if i := all.index(n.String()); i >= 0 {
			blocked := all[i]
			all = slices.Delete(all, i, i+1)
			all = all.inherit(blocked, n)
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(n)
	return all
}

// inherit adds blocked for every action in n that has no outcome of its own.
func (o outcomes) inherit(blocked outcome, n outline.Node) outcomes {
	if isAction(n) && o.index(n.Label) < 0 {
		blocked.Action = n.Label
		o = append(o, blocked)
	}
	for _, child := range n.Children {
		o = o.inherit(blocked, child)
	}
	return o
}

func (o outcomes) index(action string) int {
	return slices.IndexFunc(o, func(outcome outcome) bool { return outcome.Action == action })
}

// String returns the outcome in words: "waits for Secret default/db", "failed: quota
// exceeded".
func (o outcome) String() string {
	runs := ""
	if o.Runs > 1 {
		runs = fmt.Sprintf(" (%d runs)", o.Runs)
	}
	if o.State == stateFailed { // an error may be long
		return fmt.Sprintf("failed%s: %v", runs, o.Err)
	}
	return o.text() + runs
}

func (o outcome) text() string {
	switch o.State {
	case stateRunning:
		return "running"
	case stateDone:
		if o.RequeueAfter > 0 {
			return "done, requeues " + delay("within", o.RequeueAfter)
		}
		return "done"
	case stateExited:
		return "ended the workflow"
	case stateRequeued:
		return "requeues " + delay("after", o.RequeueAfter)
	case stateWaiting:
		return "waits for " + waits(o.Waits)
	case stateBlocked:
		return "blocked by " + strings.Join(o.BlockedBy, ", ")
	default:
		return "not run"
	}
}

// delay leaves out a time that is too short to be meant as one: it stands for "at once".
func delay(word string, d time.Duration) string {
	if d < time.Millisecond {
		return "at once"
	}
	return word + " " + short(d)
}

// short writes 1m for 1m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func waits(all []ctrlkit.Waiting) string {
	texts := make([]string, len(all))
	for i, w := range all {
		texts[i] = w.For
		if w.Every > 0 {
			texts[i] += " (polls every " + short(w.Every) + ")"
		}
	}
	return strings.Join(texts, ", ")
}

// tone is how a state looks.
func (s state) tone() drawing.Tone {
	switch s {
	case stateRunning:
		return drawing.Active
	case stateDone, stateExited:
		return drawing.Good
	case stateRequeued:
		return drawing.Again
	case stateWaiting:
		return drawing.Waiting
	case stateBlocked:
		return drawing.Blocked
	case stateFailed:
		return drawing.Bad
	default:
		return drawing.Faded
	}
}

// symbols are the marks and lines of one alphabet.
type symbols struct {
	states   [stateCount]string
	branches drawing.Branches
}

var unicodeSymbols = symbols{
	states: [stateCount]string{
		stateNotRun: "○", stateRunning: "▶", stateDone: "✓", stateExited: "◼", stateRequeued: "↻", stateWaiting: "…", stateBlocked: "⊘", stateFailed: "✗",
	},
	branches: drawing.BoxBranches,
}

var asciiSymbols = symbols{
	states: [stateCount]string{
		stateNotRun: "[ ]", stateRunning: "[>]", stateDone: "[+]", stateExited: "[x]", stateRequeued: "[@]", stateWaiting: "[.]", stateBlocked: "[/]", stateFailed: "[!]",
	},
	branches: drawing.ASCIIBranches,
}

func (s *symbols) of(state state) string {
	if state < 0 || state >= stateCount {
		state = stateNotRun
	}
	return s.states[state]
}
