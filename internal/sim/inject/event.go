// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// An Event is one of a watch on its way to the operator.
type Event struct {
	Actor  string // which process, in the trace
	Kind   string // of the object, by which events are counted
	Text   string // what has happened, in the trace
	Stream Stream
}

// eventEffects has the faults at watch events. They report whether they have taken the event over:
// if none has, it is delivered.
var eventEffects = map[fault.Kind]func(in *Injector, f fault.Fault, e *Event) (taken bool){
	fault.DelayWatch: func(in *Injector, f fault.Fault, e *Event) bool {
		in.Watches.Delay(e.Kind, f.By, delayWatchTime)
		e.Stream.PutBack()
		in.events[e.Kind]-- // it is the same event when it comes again
		return true
	},
	fault.MissEvent: func(in *Injector, _ fault.Fault, e *Event) bool {
		in.Trace.Add(e.Actor, "event", "missed: "+e.Text)
		in.Time.After(missedTime, func() { in.Watches.Expire(e.Kind) })
		return true
	},
	fault.DuplicateEvent: func(_ *Injector, _ fault.Fault, e *Event) bool {
		e.Stream.Push()
		return false
	},
	fault.DelayEvent: func(in *Injector, _ fault.Fault, e *Event) bool {
		e.Stream.LetOvertake(delayEventTime)
		in.Time.After(delayEventTime, func() {})
		return true
	},
	fault.CloseWatch: func(in *Injector, _ fault.Fault, e *Event) bool {
		e.Stream.Push()
		in.Watches.Close(e.Kind)
		return true
	},
	fault.ExpireWatch: func(in *Injector, _ fault.Fault, e *Event) bool {
		e.Stream.Push()
		in.Watches.Expire(e.Kind)
		return true
	},
}

// Event counts a watch event and lets the faults strike that the plan has for it. It reports
// whether one of them has taken the event over.
func (in *Injector) Event(e *Event) (taken bool) {
	in.events[e.Kind]++
	n := in.events[e.Kind]
	in.Catalog.note(fault.Place{Point: fault.AtEvent, At: n, Of: e.Kind, Site: e.Text})
	for _, f := range in.due(fault.AtEvent, n, e.Kind) {
		in.fire(f, e.Actor)
		if eventEffects[f.Kind](in, f.Fault, e) {
			taken = true
		}
	}
	return taken
}
