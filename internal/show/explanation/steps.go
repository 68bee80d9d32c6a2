// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/journal"
)

// steps writes the state of the steps of a controller.
func (p *page) steps(c *Controller) {
	p.line("")
	p.line("Steps of controller %s%s", c.Name, p.plans(c))
	var rows [][]string
	p.rows(c.Steps, 0, &rows)
	p.table(rows)
	if c.Failure != "" {
		p.line("  %s outside the steps: %s", marks[StateFailed], short(c.Failure))
	}
	shown := c.Unwatched[:min(len(c.Unwatched), mostUnwatched)]
	for _, u := range shown {
		p.line("  ! %s, which nothing watches: a change is noticed at the next resync, or never", short(u.what(c)))
	}
	p.more(len(c.Unwatched) - len(shown))
	if len(c.Steps) == 0 && c.Failure == "" {
		p.line("  none has run lately")
	}
}

// plans returns what a controller does now or next.
func (p *page) plans(c *Controller) string {
	switch {
	case !c.Running.IsZero():
		return fmt.Sprintf(" (running for %s)", p.age(c.Running))
	case c.Gated != "":
		return " (left alone)"
	case len(c.Queued) > 0:
		return fmt.Sprintf(" (in the queue: %s)", strings.Join(c.Queued, ", "))
	case c.Next.IsZero():
		return ""
	case c.Failures > 0:
		return fmt.Sprintf(" (failed %s, next try %s)", times(c.Failures), p.in(c.Next))
	case c.HotLoop != nil:
		return fmt.Sprintf(" (slowed down, reconciles again %s)", p.in(c.Next))
	default:
		return fmt.Sprintf(" (reconciles again %s)", p.in(c.Next))
	}
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice in a row"
	default:
		return fmt.Sprintf("%d times in a row", n)
	}
}

var marks = map[string]string{
	StateDone: "✓", StateFailed: "✗", StateStalled: "✗", StateWaiting: "…", StateRequeued: "↻", StateRunning: "▶",
	StateNotNeeded: "-", StateNotReached: "·", StateBlocked: "·", StateReady: "✓", StateNotReady: "…",
}

func (p *page) rows(steps []Step, depth int, rows *[][]string) {
	chosen := choose(steps, mostSteps, (Step).rank)
	for _, i := range chosen {
		s := steps[i]
		name := strings.Repeat("  ", depth) + s.mark() + " " + s.Name
		if s.Phase == journal.PhaseCleanup {
			name += " (cleanup)"
		}
		text := p.stateOf(&s, steps)
		if s.Again {
			text = "runs again, before: " + text
		}
		*rows = append(*rows, []string{name, text})
		p.rows(s.Actions, depth+1, rows)
	}
	if len(chosen) < len(steps) {
		p.leftOut = true
		rest := others(steps, chosen, func(s Step) string { return s.State })
		*rows = append(*rows, []string{strings.Repeat("  ", depth) + rest})
	}
}

// rank returns how much a step matters: 0 for one that is not done, or blocks others.
func (s Step) rank() int {
	switch s.State {
	case StateDone, StateNotNeeded, StateReady:
		return 2
	case StateBlocked, StateNotReached:
		return 1
	default:
		return 0
	}
}

func (s *Step) mark() string {
	if s.Again {
		return marks[StateRunning]
	}
	return cmp.Or(marks[s.State], "?")
}

// stateOf returns the state of a step in words. Beside are the steps of the same list.
func (p *page) stateOf(s *Step, beside []Step) string {
	switch s.State {
	case StateFailed:
		if inner := stuck(s.Actions); len(inner) > 0 { // the error is in the rows below
			return fmt.Sprintf("fails, %s", p.lasting(s))
		}
		return fmt.Sprintf("fails, %s: %s", p.lasting(s), s.fault())
	case StateWaiting:
		if inner := stuck(s.Actions); len(inner) > 0 {
			return fmt.Sprintf("waits, %s", p.lasting(s))
		}
		return fmt.Sprintf("waits, %s: %s", p.lasting(s), s.waitsFor())
	case StateStalled:
		return fmt.Sprintf("stalled, %s: %s", p.lasting(s), short(s.Stalled))
	case StateNotReady:
		return strings.TrimSuffix(fmt.Sprintf("not ready, %s: %s", p.lasting(s), short(s.Lacks)), ": ")
	case StateRequeued:
		return "asks to run again, " + p.lasting(s)
	case StateNotReached:
		if slices.ContainsFunc(beside, func(o Step) bool { return len(s.By) == 1 && o.Name == s.By[0] && o.passed() }) {
			return fmt.Sprintf("not reached: %s has ended the reconcile", s.By[0])
		}
		return fmt.Sprintf("not reached: %s did not pass", strings.Join(s.By, ", "))
	case StateBlocked:
		return "blocked by " + strings.Join(s.By, ", ")
	default:
		return s.State
	}
}

// fault returns the error without the name of the step or action, which is written before it.
func (s *Step) fault() string { return short(strings.TrimPrefix(s.Error, s.Name+": ")) }

func (s *Step) waitsFor() string {
	var texts []string
	for _, w := range s.Waits {
		texts = append(texts, w.For)
	}
	return short(strings.Join(texts, "; "))
}

// stuck returns the steps that failed, are stalled or wait, or instead of a step the actions of it that did, or
// the objects of its set that are not ready.
func stuck(steps []Step) []Step {
	var all []Step
	for _, s := range steps {
		if inner := stuck(s.Actions); len(inner) > 0 && !s.passed() {
			all = append(all, inner...)
		} else if s.State == StateFailed || s.State == StateStalled || s.State == StateWaiting || s.State == StateNotReady {
			all = append(all, s)
		}
	}
	return all
}
