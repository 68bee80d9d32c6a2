package explain

import (
	"slices"
	"time"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A Report is what an operator knows about an object. Its form is JSON.
type Report struct {
	Object      Object       `json:"object"`
	Controllers []Controller `json:"controllers"`
}

// An Object names an object.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
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
	Steps   []Step    `json:"steps,omitempty"`
	// Next is when it looks again by itself, and Why that is; zero if only a change makes it.
	Next     time.Time `json:"next,omitzero"`
	Why      string    `json:"why,omitempty"`
	Failures int       `json:"failures,omitempty"`
	// Failure is what failed outside the steps, such as a refused write of the status.
	Failure string `json:"failure,omitempty"`
	Class   string `json:"class,omitempty"`
	// Gated says why the object is left alone, HotLoop why it is slowed down.
	Gated   string `json:"gated,omitempty"`
	HotLoop string `json:"hotLoop,omitempty"`
	// Queued are causes of a reconcile that has not begun.
	Queued []string `json:"queued,omitempty"`
	Runs   []Run    `json:"runs,omitempty"` // the latest last
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

// A Step is what became of a step in the last reconcile that ran the steps.
type Step struct {
	Name  string        `json:"name"`
	Phase journal.Phase `json:"phase,omitempty"`
	State string        `json:"state"`
	// Since is since when it is in that state without a break, as far as it is remembered.
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
	Class string    `json:"class,omitempty"`
	Waits []Wait    `json:"waits,omitempty"`
	// By are the steps or actions that keep it from being run.
	By      []string `json:"by,omitempty"`
	Actions []Step   `json:"actions,omitempty"`
}

// A Wait is one thing that is waited for.
type Wait struct {
	For   string        `json:"for"`
	Every time.Duration `json:"every,omitempty"`
}

// A Run is one reconcile.
type Run struct {
	Began    time.Time      `json:"began"`
	Duration time.Duration  `json:"duration"`
	Result   journal.Result `json:"result,omitempty"`
	Causes   []string       `json:"causes,omitempty"`
	Writes   []string       `json:"writes,omitempty"`
}

// mostRuns is how many reconciles a report tells of.
const mostRuns = 8

// FromEntries makes a report of what a ring keeps about an object.
func FromEntries(object journal.Object, entries []journal.Entry) Report {
	report := Report{Object: Object{object.Group, object.Kind, object.Namespace, object.Name}}
	var names []string
	byController := make(map[string][]journal.Entry)
	for _, e := range entries {
		if !slices.Contains(names, e.Controller) {
			names = append(names, e.Controller)
		}
		byController[e.Controller] = append(byController[e.Controller], e)
	}
	slices.Sort(names)
	for _, name := range names {
		report.Controllers = append(report.Controllers, controllerOf(name, byController[name]))
	}
	return report
}

func controllerOf(name string, entries []journal.Entry) Controller {
	c := Controller{Name: name}
	since := make(map[string]Step) // by path: what it was, and since when
	var current []Step
	ran := false // the reconcile that is being looked at has run a step
	for _, e := range entries {
		switch ev := e.Event.(type) {
		case journal.Triggered:
			c.Queued = append(c.Queued, ev.Cause.String())
		case journal.Started:
			run := Run{Began: e.Time}
			for _, cause := range ev.Causes {
				run.Causes = append(run.Causes, cause.String())
			}
			c.Finalizer = ev.Finalizer
			c.Queued, c.Running, c.Runs = nil, e.Time, append(c.Runs, run)
			current, ran = nil, false
		case journal.Gated:
			c.Gated = ev.Message
		case journal.HotLoop:
			c.HotLoop = ev.String()
		case journal.Wrote:
			if len(c.Runs) > 0 {
				last := &c.Runs[len(c.Runs)-1]
				last.Writes = append(last.Writes, ev.String())
			}
		case journal.Requeued:
			c.Next, c.Why, c.Failures = e.Time.Add(ev.After), ev.Why, ev.Failures
		case journal.Finished:
			c.finish(e, ev)
			if ran {
				c.Steps = keepSince(current, since, e.Time)
				c.Failure, c.Class = "", ""
				if err := ev.Outcome.Err; err != nil && !anyFailed(c.Steps) {
					c.Failure, c.Class = err.Error(), ev.Outcome.Class
				}
			}
		default:
			if next, ok := stepEvent(current, e); ok {
				current, ran = next, true
			}
		}
	}
	if !c.Running.IsZero() && ran {
		c.Steps = keepSince(current, since, c.Running)
	}
	c.Runs = c.Runs[max(0, len(c.Runs)-mostRuns):]
	return c
}

// finish takes over how a reconcile ended.
func (c *Controller) finish(e journal.Entry, ev journal.Finished) {
	c.Result, c.Running = ev.Result, time.Time{}
	if len(c.Runs) > 0 {
		last := &c.Runs[len(c.Runs)-1]
		last.Result, last.Duration = ev.Result, ev.Duration
	}
	if c.Next.Before(e.Time) {
		c.Next, c.Why = time.Time{}, ""
	}
	if ev.Result != journal.Failed {
		c.Failures, c.Failure, c.Class = 0, "", ""
	}
	if ev.Result != journal.Paused {
		c.Gated = ""
	}
	if c.Why != "hot loop" {
		c.HotLoop = ""
	}
}

// stepEvent takes an event of a step or an action over into steps, and says whether it was one.
func stepEvent(steps []Step, e journal.Entry) ([]Step, bool) {
	switch ev := e.Event.(type) {
	case journal.StepBegan:
		return put(steps, Step{Name: ev.Step, Phase: ev.Phase, State: StateRunning}), true
	case journal.StepEnded:
		i := slices.IndexFunc(steps, func(s Step) bool { return s.Name == ev.Step })
		ended := stepOf(ev.Step, ev.Phase, ev.Outcome)
		if i >= 0 {
			ended.Actions = steps[i].Actions
			if ev.Phase == journal.Post && ended.State == StateDone { // what came before says more
				ended = steps[i]
				if ended.State == StateRunning {
					ended.State = StateDone
				}
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
	s := Step{Name: name, Phase: phase, State: StateDone}
	for _, w := range o.Waits {
		s.Waits = append(s.Waits, Wait{w.For, w.Every})
	}
	switch {
	case o.Err != nil:
		s.State, s.Error, s.Class = StateFailed, o.Err.Error(), o.Class
	case len(o.Waits) > 0:
		s.State = StateWaiting
	}
	return s
}

// put replaces the step of that name, or adds it.
func put(steps []Step, s Step) []Step {
	if i := slices.IndexFunc(steps, func(o Step) bool { return o.Name == s.Name }); i >= 0 {
		if s.State == StateRunning && s.Phase == journal.Post {
			return steps
		}
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

// keepSince gives to each step, and action, since when it is in its state, and remembers it for the next reconcile.
func keepSince(steps []Step, since map[string]Step, at time.Time) []Step {
	var walk func(prefix string, steps []Step)
	walk = func(prefix string, steps []Step) {
		for i := range steps {
			s := &steps[i]
			path := prefix + "/" + s.Name
			before, ok := since[path]
			s.Since = at
			if ok && before.State == s.State && sameWaits(before.Waits, s.Waits) {
				s.Since = before.Since
			}
			since[path] = *s
			walk(path, s.Actions)
		}
	}
	walk("", steps)
	return steps
}

func sameWaits(a, b []Wait) bool { return slices.Equal(a, b) }

func anyFailed(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.State == StateFailed })
}

// wayOut says what to do about a class of failures.
func wayOut(class string) string { return failure.WayOut(failure.Class(class)) }
