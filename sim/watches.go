// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/sim/schedule"
)

// watchFaults are the faults that strike at watches.
type watchFaults interface {
	// Event reports whether a fault has taken an event over.
	Event(e *inject.Event) (taken bool)

	// StartsInPast reports whether the next list of a kind shows an older state.
	StartsInPast(kind string) bool

	// ComesFromPast reports whether the list before a watch has shown an older state, and for how
	// long the watch has to stay behind.
	ComesFromPast(kind string) (time.Duration, bool)
}

// watches are the open watches of all processes. Only the driver uses them.
type watches struct {
	schedule *schedule.Schedule
	cluster  *cluster.Cluster
	trace    *trace.Trace
	faults   watchFaults

	open []*watch
	ever map[string]bool // kinds that were watched
}

// watch is an open watch of a process.
type watch struct {
	process *Process
	kind    string
	stream  *apiserver.Watch
	body    *watchBody
	framing apiserver.Framing // how the client wants its events
	started bool              // the initial events are through

	held      []apiserver.Event // taken from the stream, not delivered
	lag       int               // how many events it stays behind, until lagEnds
	lagEnds   time.Time
	overtaken *apiserver.Event // waits until waitsTill
	waitsTill time.Time
}

// begin answers a request for a watch.
func (ws *watches) begin(p *Process, body *watchBody, r *apiserver.Request) *apiserver.Response {
	kind := kindOf(r.Resource)
	initial := r.Query.Get("sendInitialEvents") == "true"
	if initial && ws.faults.StartsInPast(kind) {
		// Initial events can't come from the past: the client falls back to a list, which can.
		return inject.Refusal("422", r)
	}
	stream, refused := ws.cluster.Server.Watch(r)
	if refused != nil {
		ws.trace.Add(r.Actor, "watch", cluster.DescribeAnswer(cluster.Describe(r), refused))
		return refused
	}
	ws.trace.Add(r.Actor, "watch", cluster.Describe(r))
	if ws.ever == nil {
		ws.ever = map[string]bool{}
	}
	ws.ever[kind] = true
	w := &watch{process: p, kind: kind, stream: stream, body: body, framing: r.Framing(), started: !initial}
	if d, past := ws.faults.ComesFromPast(kind); past {
		w.lag, w.lagEnds = everything, time.Now().Add(d)
		ws.schedule.After(d, func() { w.lag = 0 })
	}
	ws.open = append(ws.open, w)
	return &apiserver.Response{Code: http.StatusOK, Header: http.Header{"Content-Type": {w.framing.ContentType()}}}
}

// everything is more events than there are.
const everything = 1 << 30

func kindOf(r schema.GroupVersionResource) string { return r.GroupResource().String() }

// kinds returns the kinds that were watched, ordered.
func (ws *watches) kinds() []string { return slices.Sorted(maps.Keys(ws.ever)) }

// Due returns never: what holds events back wakes the schedule with a timer.
func (ws *watches) Due() time.Time { return time.Time{} }

// Step delivers one event of the first watch that has one.
func (ws *watches) Step() bool {
	ws.open = slices.DeleteFunc(ws.open, func(w *watch) bool {
		if w.body.gone() || ws.schedule.Dropped(w.process.owner) {
			w.stream.Stop()
			return true
		}
		return false
	})
	if len(ws.open) == 0 {
		return false
	}
	first := ws.schedule.Pick(len(ws.open))
	for i := range ws.open {
		if w := ws.open[(first+i)%len(ws.open)]; !ws.schedule.Paused(w.process.owner) && ws.deliver(w) {
			return true
		}
	}
	return false
}

// deliver delivers the next event of a watch, if there is one that is not held back.
func (ws *watches) deliver(w *watch) bool {
	w.fetch()
	now := time.Now()
	switch {
	case w.overtaken != nil && !now.Before(w.waitsTill):
		event := *w.overtaken
		w.overtaken = nil
		ws.push(w, event)
		return true
	case len(w.held) == 0 && w.overtaken == nil && w.stream.Ended():
		w.body.end(io.EOF)
		return true
	case len(w.held) == 0 || w.overtaken != nil:
		return false
	case w.lag > 0 && len(w.held) <= w.lag && now.Before(w.lagEnds):
		return false
	}
	event := w.held[0]
	w.held = w.held[1:]
	switch {
	case event.Type == "BOOKMARK" || event.Type == "ERROR":
		w.started = true
		w.body.push(w.framing.Frame(event))
		if event.Type == "ERROR" {
			w.body.end(io.EOF)
		}
	case !w.started:
		w.body.push(w.framing.Frame(event))
	default:
		passing := &inject.Event{
			Actor: w.process.owner.Name, Kind: kindOf(event.Resource), Text: describeEvent(event), Stream: delivery{ws, w, event},
		}
		if !ws.faults.Event(passing) {
			ws.push(w, event)
		}
	}
	return true
}

// fetch takes all events that there are from the server.
func (w *watch) fetch() {
	for {
		event, ok := w.stream.Next()
		if !ok {
			return
		}
		w.held = append(w.held, event)
	}
}

func (ws *watches) push(w *watch, event apiserver.Event) {
	ws.trace.Add(w.process.owner.Name, "event", describeEvent(event))
	w.body.push(w.framing.Frame(event))
}

func describeEvent(e apiserver.Event) string {
	return e.Type + " " + cluster.ObjectName(e.Resource, e.Namespace, e.Name)
}

// delivery is a watch that is about to deliver an event, as faults see it.
type delivery struct {
	ws    *watches
	w     *watch
	event apiserver.Event
}

func (d delivery) Push() { d.ws.push(d.w, d.event) }

func (d delivery) PutBack() { d.w.held = append([]apiserver.Event{d.event}, d.w.held...) }

func (d delivery) LetOvertake(wait time.Duration) {
	d.w.overtaken, d.w.waitsTill = &d.event, time.Now().Add(wait)
}

// of returns the open watches of a kind.
func (ws *watches) of(kind string) []*watch {
	var list []*watch
	for _, w := range ws.open {
		if w.kind == kind {
			list = append(list, w)
		}
	}
	return list
}

// Delay makes the watches of a kind stay some events behind, for a while.
func (ws *watches) Delay(kind string, events int, d time.Duration) {
	for _, w := range ws.of(kind) {
		w.lag, w.lagEnds = events, time.Now().Add(d)
	}
	ws.schedule.After(d, func() {
		for _, w := range ws.of(kind) {
			w.lag = 0
		}
	})
}

// Close ends the watches of a kind, as a load balancer does: the client watches again from where it
// was.
func (ws *watches) Close(kind string) {
	for _, w := range ws.of(kind) {
		ws.schedule.OneByOne(func() { w.body.end(io.EOF) })
	}
}

// Expire ends the watches of a kind with 410 Gone: the client has to list again.
func (ws *watches) Expire(kind string) {
	for _, w := range ws.of(kind) {
		ws.schedule.OneByOne(func() {
			w.body.push(w.framing.Frame(inject.Gone()))
			w.body.end(io.EOF)
		})
	}
}

// expireAll makes every informer list again. The watches of a kind end once for each of them, which
// the second time has no effect.
func (ws *watches) expireAll() {
	for _, w := range ws.open {
		ws.Expire(w.kind)
	}
}

// endOf ends the watches of a process that has crashed.
func (ws *watches) endOf(p *Process) {
	for _, w := range ws.open {
		if w.process == p {
			w.body.end(inject.ErrCrashed)
		}
	}
}

func (ws *watches) endAll() {
	for _, w := range ws.open {
		w.body.end(inject.ErrCrashed)
	}
}
