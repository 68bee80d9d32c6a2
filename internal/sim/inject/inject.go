// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package inject lets the faults of a plan strike.
//
// Everything on its way from the operator to the outside, and every watch event on its way back,
// passes an [Injector], which counts it. What each kind of fault does is one entry in one of the
// tables writeEffects, readEffects, callEffects and eventEffects; where it strikes and how it is
// written is its entry in package internal/sim/fault.
package inject

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/actor"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
)

// How long things last, in virtual time.
const (
	delayWatchTime = 30 * time.Second // how long a watch may stay behind
	delayEventTime = 3 * time.Second  // how long one event may be overtaken
	missedTime     = time.Minute      // from a missed event to the next list
	insideTime     = 5 * time.Second  // from a crash inside a call to the effect of the call
	hangTime       = time.Hour        // how long a call hangs whose caller has no time limit
)

// A Process is the one of the operator that a fault strikes.
type Process interface {
	// Crash kills the process at once. A moment later another one starts.
	Crash()

	// Stop cancels the context of the process. A moment later another one starts.
	Stop()

	// StartSecond starts another process beside it, and crashes this one after a while, as one
	// that has lost its lease.
	StartSecond()

	// JumpClock changes the clock of the process.
	JumpClock(by time.Duration)
}

// A Turn is a request or call that waits for its answer.
type Turn interface {
	// Hold puts it back until a time: it comes to the injector again then.
	Hold(until time.Time)

	// Pause lets its process stand still.
	Pause(d time.Duration)
}

// Watches are the open watches of the operator.
type Watches interface {
	// Delay makes the watches of a kind stay some events behind, for a while.
	Delay(kind string, events int, d time.Duration)

	// Close ends the watches of a kind: clients watch again from where they were.
	Close(kind string)

	// Expire ends the watches of a kind with 410 Gone: clients list again.
	Expire(kind string)
}

// A Stream is a watch that is about to deliver an event.
type Stream interface {
	// Push delivers the event.
	Push()

	// PutBack makes the event the next one again.
	PutBack()

	// LetOvertake delivers the event after those that come within a time.
	LetOvertake(d time.Duration)
}

// A Judge looks at writes and calls of the operator before and after they have their effect.
type Judge interface {
	BeforeWrite(r *apiserver.Request)
	// AfterWrite reports whether a write that was refused is no more than a retry, after a pause.
	AfterWrite(r *apiserver.Request, response *apiserver.Response) (idle bool)

	BeforeCall(c external.Call)
	AfterCall(c external.Call)
}

// ErrCrashed is what everything answers to the goroutines that are left of a crashed process.
var ErrCrashed = errors.New("sim: this process has crashed")

// An Answer is what a request or call gets: a response or an error, or a panic in the goroutine
// that waits for it.
type Answer struct {
	Response *apiserver.Response
	Err      error
	Panics   bool
}

// Options are the parts of a run that faults reach.
type Options struct {
	Plan    fault.Plan
	Cluster *cluster.Cluster
	Actors  *actor.Actors
	Judge   Judge
	Watches Watches
	Time    actor.Time
	Active  func() // is called when something happened by which idleness is measured
	Trace   *trace.Trace

	// Catalog records the places of a run without faults. It may be nil.
	Catalog *Catalog
}

// An Injector lets the faults of one run strike. Only the driver uses it.
type Injector struct {
	Options
	faults    []*planned
	suspended bool
	pasts     []past

	writes, reads, calls, deletions int
	events                          map[string]int // by kind
}

// planned is a fault of the plan in this run.
type planned struct {
	fault.Fault
	fired bool
}

// New returns the injector of one run.
func New(o Options) *Injector {
	in := &Injector{Options: o, events: map[string]int{}}
	for _, f := range o.Plan.Faults {
		in.faults = append(in.faults, &planned{Fault: f})
	}
	return in
}

// Suspend keeps faults from striking from now on: while it is proved that an idle operator stays
// idle, a fault would be a reason not to.
func (in *Injector) Suspend() { in.suspended = true }

// Resume ends what Suspend began.
func (in *Injector) Resume() { in.suspended = false }

// due returns the faults of the plan that strike at a place.
func (in *Injector) due(at fault.Point, n int, kind string) []*planned {
	if in.suspended {
		return nil
	}
	var list []*planned
	for _, f := range in.faults {
		if !f.fired && f.At == n && f.Kind.Point() == at && (at != fault.AtEvent || f.Of == kind) {
			list = append(list, f)
		}
	}
	return list
}

// fire records that a fault strikes.
func (in *Injector) fire(f *planned, actor string) {
	f.fired = true
	in.Trace.Add(actor, "fault", f.String())
	in.Active()
}

// Fired reports for each fault of the plan whether it has struck.
func (in *Injector) Fired() []bool {
	list := make([]bool, len(in.faults))
	for i, f := range in.faults {
		list[i] = f.fired
	}
	return list
}

// Start lets the faults strike that come before the operator starts.
func (in *Injector) Start() {
	for _, f := range in.due(fault.AtWrite, 0, "") {
		if f.Kind == fault.Withhold {
			in.fire(f, "sim")
			in.Actors.Withhold(f.Of)
		}
	}
}

// Deletion lets the faults strike that come before a user deletes something.
func (in *Injector) Deletion() {
	in.deletions++
	in.Catalog.note(fault.Place{Point: fault.AtDeletion, At: in.deletions, Withholdable: in.Cluster.Withholdable()})
	for _, f := range in.due(fault.AtDeletion, in.deletions, "") {
		in.fire(f, "sim")
		in.Actors.Withhold(f.Of)
	}
}

// Checkpoint reports whether the plan wants to prove, at a checkpoint of the script, that the
// operator is idle.
func (in *Injector) Checkpoint(n int) bool { return in.wants(fault.WhenIdle, n, "sim") }

// Detour reports whether the script takes a detour.
func (in *Injector) Detour(n int) bool {
	in.Catalog.note(fault.Place{Point: fault.AtDetour, At: n})
	return in.wants(fault.AtDetour, n, "user")
}

func (in *Injector) wants(at fault.Point, n int, actor string) bool {
	faults := in.due(at, n, "")
	for _, f := range faults {
		in.fire(f, actor)
	}
	return len(faults) > 0
}

// past makes the next list of a kind, and the watch after it, show an older state.
type past struct {
	kind   string
	events int
	listed bool
}

// startInPast makes the next list of a kind show an older state. One that the process which crashes
// now has not made is dropped: the next process makes one list, not two.
func (in *Injector) startInPast(kind string, events int) {
	in.pasts = slices.DeleteFunc(in.pasts, func(p past) bool { return p.kind == kind && !p.listed })
	in.pasts = append(in.pasts, past{kind: kind, events: events})
}

// StartsInPast reports whether the next list of a kind shows an older state. A watch that sends
// initial events can't: it has to be refused, so that its client lists.
func (in *Injector) StartsInPast(kind string) bool {
	for _, p := range in.pasts {
		if p.kind == kind && !p.listed {
			return true
		}
	}
	return false
}

// ComesFromPast reports whether the last list of a kind showed an older state, so that the watch
// after it has to stay behind: once for each such list, and for how long.
func (in *Injector) ComesFromPast(kind string) (time.Duration, bool) {
	for i, p := range in.pasts {
		if p.kind == kind && p.listed {
			in.pasts = append(in.pasts[:i:i], in.pasts[i+1:]...)
			return delayWatchTime, true
		}
	}
	return 0, false
}

// listOfPast answers a list with an older state, or returns nil.
func (in *Injector) listOfPast(r *apiserver.Request) *apiserver.Response {
	if r.Verb != "list" {
		return nil
	}
	for i := range in.pasts {
		if p := &in.pasts[i]; !p.listed && p.kind == r.Resource.GroupResource().String() {
			p.listed = true
			return in.Cluster.ExecuteInPast(r, p.events)
		}
	}
	return nil
}

func numbered(what string, n int) string { return fmt.Sprintf("%s %d", what, n) }
