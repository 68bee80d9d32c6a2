// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A reconcile is what a journal knows of one.
type reconcile struct {
	id         string // of its run, unique in a process
	object     journal.Object
	controller string
	began      time.Time
	ended      time.Time // zero while it runs
	result     journal.Result
	outcome    journal.Outcome
	causes     []journal.Cause
	spans      []span
	marks      []mark
	next       time.Time // zero if it has asked for no time
	why        string
}

// A span is a phase of a step, or an action of a workflow.
type span struct {
	name     string
	from, to time.Time
	outcome  journal.Outcome
	action   bool
	skipped  string // why it did not run, empty if it did
}

// A mark is something that happened at one time.
type mark struct {
	at   time.Time
	kind markKind
	text string
	step string
	bad  bool
	// object is what was written, empty for other marks.
	object journal.Object
	noOp   bool
}

// A markKind is what a mark is about.
type markKind string

const (
	wrote  markKind = "write"
	called markKind = "call"
	read   markKind = "live read"
	hot    markKind = "hot loop"
)

// reconcilesOf returns those that are in the entries about an object, the latest last.
func reconcilesOf(entries []journal.Entry) []*reconcile {
	var all []*reconcile
	running := map[string]*reconcile{} // by controller
	for _, e := range entries {
		if start, ok := e.Event.(journal.Started); ok {
			r := &reconcile{object: e.Object, controller: e.Controller, began: e.Time, causes: start.Causes}
			if e.Run != nil {
				r.id = string(e.Run.ID)
			}
			running[e.Controller] = r
			all = append(all, r)
			continue
		}
		if r := running[e.Controller]; r != nil {
			r.read(e)
		}
	}
	return all
}

// read adds an entry.
func (r *reconcile) read(e journal.Entry) {
	switch ev := e.Event.(type) {
	case journal.StepEnded:
		r.spans = append(r.spans, span{name: ev.Step + phase(ev.Phase), from: e.Time.Add(-ev.Duration), to: e.Time, outcome: ev.Outcome})
	case journal.ActionEnded:
		r.spans = append(r.spans, span{name: ev.Action, from: e.Time.Add(-ev.Duration), to: e.Time, outcome: ev.Outcome, action: true})
	case journal.StepSkipped:
		r.spans = append(r.spans, span{name: ev.Step, from: e.Time, to: e.Time, skipped: ev.String()})
	case journal.ActionBlocked:
		r.spans = append(r.spans, span{name: ev.Action, from: e.Time, to: e.Time, skipped: ev.String(), action: true})
	case journal.Gated:
		r.spans = append(r.spans, span{name: "Left alone", from: e.Time, to: e.Time, skipped: ev.Message})
	case journal.Wrote:
		r.marks = append(r.marks, mark{at: e.Time, kind: wrote, text: ev.String(), step: ev.Step, bad: ev.Err != nil, object: ev.Object, noOp: ev.NoOp})
	case journal.Called:
		r.marks = append(r.marks, mark{at: e.Time, kind: called, text: calledText(ev), step: ev.Step, bad: ev.Err != nil})
	case journal.Read:
		if ev.Live || ev.Err != nil {
			missing := ev.Err == nil || strings.Contains(ev.Err.Error(), "not found") // a ring keeps texts of errors
			r.marks = append(r.marks, mark{at: e.Time, kind: read, text: ev.String(), step: ev.Step, bad: !missing})
		}
	case journal.HotLoop:
		r.marks = append(r.marks, mark{at: e.Time, kind: hot, text: ev.String(), bad: true})
	case journal.Requeued:
		r.next, r.why = e.Time.Add(ev.After), ev.Why
	case journal.Finished:
		r.ended, r.result, r.outcome = e.Time, ev.Result, ev.Outcome
	}
}

func phase(p journal.Phase) string {
	if p == journal.PhaseDo {
		return ""
	}
	return " (" + string(p) + ")"
}

func calledText(ev journal.Called) string {
	if ev.Duration < time.Millisecond {
		return ev.String()
	}
	return fmt.Sprintf("%s (%v)", ev.String(), ev.Duration.Round(time.Millisecond))
}

// An ending is how a result is shown: its class in the style sheet, its symbol, and its word.
type ending struct{ tone, symbol, word string }

// endings are those of the results. A reconcile that runs has none.
var endings = map[journal.Result]ending{
	"":                      {"active", "▶", "running"},
	journal.ResultDone:      {"good", "✓", "done"},
	journal.ResultDeleted:   {"good", "✓", "cleaned up"},
	journal.ResultFailed:    {"bad", "✗", "failed"},
	journal.ResultStalled:   {"bad", "■", "stalled"},
	journal.ResultWaiting:   {"waiting", "…", "waiting"},
	journal.ResultPaused:    {"blocked", "‖", "paused"},
	journal.ResultConverged: {"faded", "–", "nothing to do"},
	journal.ResultStale:     {"faded", "~", "stale cache"},
	journal.ResultGone:      {"faded", "×", "object gone"},
}

func (r *reconcile) tone() (tone, symbol, word string) {
	e, ok := endings[r.result]
	if !ok { // of a later version
		e = ending{"faded", "?", string(r.result)}
	}
	return e.tone, e.symbol, e.word
}

// causeSymbols are the symbols of causes.
var causeSymbols = map[journal.CauseKind]string{
	journal.CauseOwnChange: "●", journal.CauseOwnWrite: "◉", journal.CauseChildChange: "◆", journal.CauseForeignChange: "◇",
	journal.CauseTimer: "◷", journal.CauseBackoff: "↺", journal.CauseStart: "▷", journal.CauseUnknown: "?",
}

// related returns objects that the reconciles of an object are about: those that have caused one,
// the written ones, and its owner. Each once, in the order in which they are named.
func related(of journal.Object, all []*reconcile) []journal.Object {
	var found []journal.Object
	add := func(o journal.Object) {
		if o.Name != "" && o != of && !slices.Contains(found, o) {
			found = append(found, o)
		}
	}
	for _, r := range slices.Backward(all) {
		for _, c := range r.causes {
			add(c.Object)
		}
		for _, m := range r.marks {
			add(m.object)
		}
	}
	return found
}

// An arrow leads from the reconcile that has caused another one to it.
type arrow struct{ from, to *reconcile }

// arrows finds what has caused what: a reconcile that was caused by a change of an object follows
// the one that has written that object last, unless it was reconciled since then: what it follows
// now is a change by another client.
func arrows(all []*reconcile) []arrow {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *reconcile) int { return a.began.Compare(b.began) })
	type writing struct {
		by *reconcile
		at time.Time
	}
	writes := map[journal.Object][]writing{}
	for _, r := range all {
		for _, m := range r.marks {
			if m.kind == wrote && !m.bad && !m.noOp {
				writes[m.object] = append(writes[m.object], writing{r, m.at})
			}
		}
	}
	for _, w := range writes {
		slices.SortStableFunc(w, func(a, b writing) int { return a.at.Compare(b.at) })
	}
	type lane struct {
		object     journal.Object
		controller string
	}
	var found []arrow
	before := map[lane]time.Time{} // when the reconcile before began
	for _, r := range all {
		from, since := map[*reconcile]bool{}, before[lane{r.object, r.controller}]
		before[lane{r.object, r.controller}] = r.began
		for _, c := range r.causes {
			what := c.Object
			switch c.Kind {
			case journal.CauseOwnWrite:
				what = r.object
			case journal.CauseChildChange, journal.CauseForeignChange, journal.CauseOwnChange:
				what = cmp.Or(what, r.object)
			default:
				continue
			}
			w := writes[what]
			i, _ := slices.BinarySearchFunc(w, r.began, func(w writing, t time.Time) int { return w.at.Compare(t) })
			if i == 0 || w[i-1].by == r || w[i-1].at.Before(since) || c.Kind == journal.CauseOwnChange && w[i-1].by.object == r.object && w[i-1].by.controller == r.controller {
				continue
			}
			if by := w[i-1].by; !from[by] {
				from[by] = true
				found = append(found, arrow{by, r})
			}
		}
	}
	return found
}

func causeText(c journal.Cause) string { return explanation.OneLine(explanation.CauseText(c)) }
