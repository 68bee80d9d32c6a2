// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/journal"
)

// mostRuns is how many reconciles a report has.
const mostRuns = 8

// FromEntries makes a report from the entries of a ring about an object.
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

// A reading is what is known from the entries of a controller that have been read.
type reading struct {
	Controller

	since   map[string]Step // by path: the state of each step, and since when
	known   bool            // whether the history before the reconcile being read is complete
	hot     time.Time       // when the object stops being slowed down
	causes  []journal.Cause // of the request in the queue
	current current
}

// current is the reconcile that is being read.
type current struct {
	steps    []Step
	ran      bool // whether a step ran
	requeued bool
	deleting bool

	unwatched []Unwatched
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
	case journal.Unwatched:
		r.current.unwatched = append(r.current.unwatched, Unwatched{ev.Step, ev.Object})
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
		run.Causes = append(run.Causes, CauseText(cause))
		if cause.Kind == journal.CauseOwnChange && cause.Verb == "created" {
			r.known = true
		}
	}
	r.Finalizer, r.Running, r.causes = ev.Finalizer, e.Time, nil
	r.Runs = append(r.Runs, run)
	r.current = current{deleting: ev.Deleting}
}

// finish reads how a reconcile ended. One that ended before its steps keeps what was planned.
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
		r.Steps, r.Unwatched = r.keepSince(r.current.steps, e.Time), r.current.unwatched
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
		r.Queued = append(r.Queued, CauseText(c))
	}
	r.Runs = r.Runs[max(0, len(r.Runs)-mostRuns):]
	return r.Controller
}

// midway returns the steps in the middle of a reconcile. Those that have not ended in it are as the
// one before has left them.
func (r *reading) midway() []Step {
	steps := slices.Clone(r.Steps)
	for _, s := range r.current.steps {
		i := slices.IndexFunc(steps, func(old Step) bool { return old.Name == s.Name })
		switch {
		case i < 0:
			steps = append(steps, s)
		case s.State == StateRunning && steps[i].Phase == s.Phase:
			steps[i].Again, steps[i].Late = true, s.Late
		default:
			steps[i] = s
		}
	}
	return steps
}

// CauseText says what has caused a reconcile, in words that stand after "because".
func CauseText(c journal.Cause) string {
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
		return "a scheduled requeue"
	case journal.CauseBackoff:
		return "a retry after a failure"
	case journal.CauseStart:
		return "the first reconcile in this process"
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
	if slices.ContainsFunc(ev.Fields, isOfSet) { // what a set writes to each of its objects says nothing
		ev.Fields = slices.DeleteFunc(slices.Clone(ev.Fields), func(field string) bool { return isOfSet(field) || field == ".metadata.ownerReferences" })
	}
	if ev.Err != nil {
		w.Error, ev.Err = ev.Err.Error(), nil
	}
	w.What = ev.String()
	return w
}

// isOfSet reports whether a field is a label or an annotation of package apply.
func isOfSet(field string) bool { return strings.Contains(field, "[apply.ctrlkit.dev/") }

// keepSince sets since when each step, and action, is in its state, and records that for the next
// reconcile.
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
