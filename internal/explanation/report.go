// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A Report is what an operator knows about an object. Its form is JSON, with durations in nanoseconds.
type Report struct {
	Object      journal.Object `json:"object"`
	Controllers []Controller   `json:"controllers"`
}

// A Controller is what one controller of the operator knows.
type Controller struct {
	Name string `json:"name"`
	// Finalizer is the one that it puts on objects, empty if it has none.
	Finalizer string `json:"finalizer,omitempty"`
	// Result is how the last reconcile ended, empty if it has not.
	Result journal.Result `json:"result,omitempty"`
	// Running is when a reconcile began that has not ended yet.
	Running time.Time `json:"running,omitzero"`
	// Steps are from the last reconcile that ran any: one that ended before its steps says nothing about them. While one runs, those that it has
	// not ended in it are as the one before has left them.
	Steps []Step `json:"steps,omitempty"`
	// Next is when it looks again by itself, and Why that is; zero if only a change makes it.
	Next     time.Time `json:"next,omitzero"`
	Why      string    `json:"why,omitempty"`
	Failures int       `json:"failures,omitempty"`
	// Failure is what failed outside the steps, such as a refused write of the status, with its class and the way out.
	Failure string `json:"failure,omitempty"`
	Class   string `json:"class,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	// Gated says why the object is left alone.
	Gated   string   `json:"gated,omitempty"`
	HotLoop *HotLoop `json:"hotLoop,omitempty"`
	// Queued are causes of a reconcile that has not begun.
	Queued []string `json:"queued,omitempty"`
	Runs   []Run    `json:"runs,omitempty"` // the latest last
}

// over says whether the controller has seen the object go, or has let it go.
func (c *Controller) over() bool {
	return c.Result == journal.ResultGone || c.Result == journal.ResultDeleted
}

// busy says whether the controller looks at the object now, or will by itself.
func (c *Controller) busy() bool { return !c.Running.IsZero() || len(c.Queued) > 0 || !c.Next.IsZero() }

// A HotLoop is why an object is slowed down.
type HotLoop struct {
	What string `json:"what"`
	// Managers are the field managers of the others who write; empty if they are not known, or there are none.
	Managers []string `json:"managers,omitempty"`
}

// States of steps and actions.
const (
	StateDone       = "done"
	StateFailed     = "failed"
	StateWaiting    = "waiting"
	StateRequeued   = "requeued" // it wants to be run again, and the rest after it
	StateRunning    = "running"
	StateNotNeeded  = "not needed"
	StateNotReached = "not reached"
	StateBlocked    = "blocked"
)

// A Step is what became of a step, or of an action in it.
type Step struct {
	Name  string        `json:"name"`
	Phase journal.Phase `json:"phase,omitempty"`
	State string        `json:"state"`
	// Since is since when it is in that state without a break. It may be so for longer if OrLonger says so: what was before is not remembered.
	Since    time.Time `json:"since,omitzero"`
	OrLonger bool      `json:"orLonger,omitempty"`
	// Again says that it is being run again.
	Again bool `json:"again,omitempty"`
	// Error, Class and Way are what failed, what kind of failure that is, and the way out.
	Error  string         `json:"error,omitempty"`
	Class  string         `json:"class,omitempty"`
	Remedy string         `json:"remedy,omitempty"`
	Waits  []journal.Wait `json:"waits,omitempty"`
	// After is the time that it has asked for.
	After time.Duration `json:"after,omitempty"`
	// By are the steps or actions that keep it from being run.
	By      []string `json:"by,omitempty"`
	Actions []Step   `json:"actions,omitempty"`
}

// passed says whether the steps after s were reached, as far as the state says it.
func (s *Step) passed() bool {
	return s.State != StateFailed && s.State != StateWaiting && s.State != StateRequeued
}

// A Run is one reconcile.
type Run struct {
	Began    time.Time      `json:"began"`
	Duration time.Duration  `json:"duration"`
	Result   journal.Result `json:"result,omitempty"` // empty while it runs
	Causes   []string       `json:"causes,omitempty"`
	Writes   []Write        `json:"writes,omitempty"`
}

// A Write is something that was written, or was refused with an error.
type Write struct {
	What  string `json:"what"`
	Error string `json:"error,omitempty"`
}

// mostRuns is how many reconciles a report tells of.
const mostRuns = 8

// FromEntries makes a report of what a ring keeps about an object.
func FromEntries(object journal.Object, entries []journal.Entry) Report {
	report := Report{Object: object}
	byController := make(map[string]*reading)
	var names []string
	for _, e := range entries {
		r := byController[e.Controller]
		if r == nil {
			r = &reading{Controller: Controller{Name: e.Controller}, since: make(map[string]Step)}
			byController[e.Controller] = r
			names = append(names, e.Controller)
		}
		r.read(e)
	}
	slices.Sort(names)
	for _, name := range names {
		report.Controllers = append(report.Controllers, byController[name].controller())
	}
	return report
}

// A reading is what the entries of a controller have said so far.
type reading struct {
	Controller

	since   map[string]Step // by path: what each step was, and since when
	known   bool            // what was before the reconcile that is being read: it is among the entries, or there was nothing
	hot     time.Time       // until when the object is slowed down
	causes  []journal.Cause // of what is in the queue
	current current
}

// current is the reconcile that is being read.
type current struct {
	steps    []Step
	ran      bool // a step
	requeued bool
	deleting bool
}

func (r *reading) read(e journal.Entry) {
	switch ev := e.Event.(type) {
	case journal.Triggered:
		r.causes = journal.MergeCauses(r.causes, ev.Cause)
	case journal.Started:
		r.start(e, ev)
	case journal.Gated:
		r.Gated = ev.Message
	case journal.HotLoop:
		r.HotLoop, r.hot = &HotLoop{ev.String(), ev.Managers}, e.Time.Add(ev.Slowed)
	case journal.Wrote:
		if len(r.Runs) > 0 {
			last := &r.Runs[len(r.Runs)-1]
			last.Writes = append(last.Writes, writeOf(ev))
		}
	case journal.Requeued:
		r.Next, r.Why, r.Failures, r.current.requeued = e.Time.Add(ev.After), ev.Why, ev.Failures, true
	case journal.Finished:
		r.finish(e, ev)
	default:
		if steps, ok := stepEvent(r.current.steps, e); ok {
			r.current.steps, r.current.ran = steps, true
		}
	}
}

func (r *reading) start(e journal.Entry, ev journal.Started) {
	run := Run{Began: e.Time}
	for _, cause := range ev.Causes {
		run.Causes = append(run.Causes, causeText(cause))
		if cause.Kind == journal.CauseOwnChange && cause.Verb == "created" {
			r.known = true
		}
	}
	r.Finalizer, r.Running, r.causes = ev.Finalizer, e.Time, nil
	r.Runs = append(r.Runs, run)
	r.current = current{deleting: ev.Deleting}
}

// finish takes over how a reconcile ended. One that ended early leaves what was planned.
func (r *reading) finish(e journal.Entry, ev journal.Finished) {
	r.Result, r.Running = ev.Result, time.Time{}
	if len(r.Runs) > 0 {
		last := &r.Runs[len(r.Runs)-1]
		last.Result, last.Duration = ev.Result, ev.Duration
	}
	if !r.current.requeued && (ev.Result != journal.ResultConverged || r.Next.Before(e.Time)) {
		r.Next, r.Why = time.Time{}, ""
	}
	if ev.Result != journal.ResultFailed {
		r.Failures = 0
	}
	if ev.Result != journal.ResultPaused {
		r.Gated = ""
	}
	if !e.Time.Before(r.hot) {
		r.HotLoop = nil
	}
	if r.current.ran {
		settle(r.current.steps, ev, r.current.deleting)
		r.Steps = r.keepSince(r.current.steps, e.Time)
		r.known = r.known || len(r.Runs) > 0
	}
	if ev.Result != journal.ResultStale {
		r.Failure, r.Class, r.Remedy = "", "", ""
		if outside := outsideOf(r.current.steps, ev.Outcome.Err); outside != "" {
			r.Failure, r.Class, r.Remedy = outside, ev.Outcome.Class, ev.Outcome.Remedy
		}
	}
	if ev.Result == journal.ResultGone { // another object of this name has a history of its own
		clear(r.since)
		r.known = true
	}
	r.current = current{}
}

// controller returns what is known after the last entry.
func (r *reading) controller() Controller {
	if !r.Running.IsZero() && r.current.ran {
		r.Steps = r.keepSince(r.midway(), r.Running)
	}
	for _, c := range r.causes {
		r.Queued = append(r.Queued, causeText(c))
	}
	r.Runs = r.Runs[max(0, len(r.Runs)-mostRuns):]
	return r.Controller
}

// midway returns the steps in the middle of a reconcile: of those that have not ended in it, what the one before has left.
func (r *reading) midway() []Step {
	steps := slices.Clone(r.Steps)
	for _, s := range r.current.steps {
		i := slices.IndexFunc(steps, func(old Step) bool { return old.Name == s.Name })
		switch {
		case i < 0:
			steps = append(steps, s)
		case s.State == StateRunning && steps[i].Phase == s.Phase:
			steps[i].Again = true
		default:
			steps[i] = s
		}
	}
	return steps
}

// causeText says what a cause is to somebody who does not know the words of package journal.
func causeText(c journal.Cause) string {
	times := ""
	if c.Times > 1 {
		times = fmt.Sprintf(" %d times", c.Times)
	}
	switch c.Kind {
	case journal.CauseOwnChange:
		return strings.TrimSpace("the object was "+cmp.Or(c.Verb, "changed")) + times
	case journal.CauseOwnWrite:
		return "the operator's own write" + times
	case journal.CauseTimer:
		return "the time had come"
	case journal.CauseBackoff:
		return "the next try was due"
	case journal.CauseStart:
		return "the operator had not looked at it yet"
	case journal.CauseUnknown:
		return "something that was not recorded"
	default:
		c.Times = 0
		text := c.String()
		if c.Verb != "" {
			text = strings.TrimSuffix(text, c.Verb) + "was " + c.Verb
		}
		return text + times
	}
}

func writeOf(ev journal.Wrote) Write {
	w := Write{}
	if ev.Err != nil {
		w.Error, ev.Err = ev.Err.Error(), nil
	}
	w.What = ev.String()
	return w
}

// stepEvent takes an event of a step or an action over into steps, and says whether it was one.
func stepEvent(steps []Step, e journal.Entry) ([]Step, bool) {
	switch ev := e.Event.(type) {
	case journal.StepBegan:
		if ev.Phase == journal.PhasePost { // it says something only if it fails
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
			if ev.Phase == journal.PhasePost && !steps[i].passed() { // what came first is why it did not pass
				return steps, true
			}
		}
		return put(steps, ended), true
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
	default:
		return steps, false
	}
}

func stepOf(name string, phase journal.Phase, o journal.Outcome) Step {
	s := Step{Name: name, Phase: phase, State: StateDone, Waits: slices.Clone(o.Waits), After: o.RequeueAfter}
	switch {
	case o.Err != nil:
		s.State, s.Error, s.Class, s.Remedy = StateFailed, o.Err.Error(), o.Class, cmp.Or(o.Remedy, failure.RemedyOf(failure.Class(o.Class)))
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

// settle finds out, when a reconcile has ended, which steps kept others from being run: the journal tells which one was run last, and in a group
// that may be another one.
func settle(steps []Step, ev journal.Finished, deleting bool) {
	cut := slices.ContainsFunc(steps, func(s Step) bool { return s.State == StateNotReached }) || deleting && ev.Result == journal.ResultWaiting
	stopped := func(s Step) bool { return !s.passed() }
	if cut && !slices.ContainsFunc(steps, stopped) {
		for i := range slices.Backward(steps) { // nothing failed and nothing waits: the last that has asked for a time did so to be run again
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

// keepSince gives to each step, and action, since when it is in its state, and remembers that for the next reconcile.
func (r *reading) keepSince(steps []Step, at time.Time) []Step {
	before := r.since
	r.since = make(map[string]Step)
	var walk func(prefix string, steps []Step)
	walk = func(prefix string, steps []Step) {
		for i := range steps {
			s := &steps[i]
			path := prefix + "\n" + s.Name
			s.Since, s.OrLonger = at, !r.known
			if b, ok := before[path]; ok && b.State == s.State && b.Phase == s.Phase && slices.Equal(b.Waits, s.Waits) {
				s.Since, s.OrLonger = b.Since, b.OrLonger
			}
			r.since[path] = *s
			walk(path, s.Actions)
		}
	}
	walk("", steps)
	return steps
}
