// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// How long things last, in virtual time.
const (
	restartTime   = time.Second      // from a crash to the next process
	lagTime       = 30 * time.Second // how long a watch may stay behind
	delayTime     = 3 * time.Second  // how long one event may be overtaken
	missedTime    = time.Minute      // from a missed event to the next list
	leaderTime    = time.Minute      // how long two processes work beside each other
	insideTime    = 5 * time.Second  // from a crash inside a call to the effect of the call
	hangTime      = time.Hour        // how long a call hangs whose caller has no time limit
	occupiedTime  = 10 * time.Minute // how long a name is occupied
	fightRounds   = 3                // how often a write is undone
	fightInterval = time.Second
)

// pending is a fault of the plan in this run.
type pending struct {
	fault.Fault
	fired bool
}

// due returns the faults of the plan that strike at a place.
func (w *World) due(at fault.Point, n int, of string) []*pending {
	if w.proving != "" {
		return nil // what is proved is rest, and a fault would end it
	}
	var list []*pending
	for _, f := range w.faults {
		if f.fired || f.At != n || f.Kind.Point() != at || (at == fault.AtEvent && f.Of != of) {
			continue
		}
		list = append(list, f)
	}
	return list
}

// fire notes that a fault has struck.
func (w *World) fire(f *pending, actor string) {
	f.fired = true
	w.trace.add(actor, "fault", f.String())
	w.active()
}

func (w *World) anyFired() bool {
	for _, f := range w.faults {
		if f.fired {
			return true
		}
	}
	return false
}

// fired reports for each fault of the plan whether it has struck.
func (w *World) fired() []bool {
	list := make([]bool, len(w.faults))
	for i, f := range w.faults {
		list[i] = f.fired
	}
	return list
}

// injectStart lets the faults strike that are there before the operator starts.
func (w *World) injectStart() {
	for _, f := range w.due(fault.AtWrite, 0, "") {
		if f.Kind == fault.Withhold {
			w.fire(f, "sim")
			w.withhold(f.Of)
		}
	}
}

// restsWith reports whether the plan wants rest to be proved at a rest of the script.
func (w *World) restsWith(n int) bool {
	proves := false
	for _, f := range w.due(fault.WhenIdle, n, "") {
		w.fire(f, "sim")
		proves = true
	}
	return proves
}

// injectDeletion lets the faults strike that come before a user deletes something.
func (w *World) injectDeletion() {
	w.catalog.deletions++
	for _, f := range w.due(fault.AtDeletion, w.catalog.deletions, "") {
		w.fire(f, "sim")
		w.withhold(f.Of)
	}
}

// injectWrite answers a write of the operator.
func (w *World) injectWrite(n int, p *parked) {
	r := p.request
	what := fmt.Sprintf("write %d", n)
	w.catalog.noteWrite(w, n, r)
	faults := w.due(fault.AtWrite, n, "")
	for _, f := range faults {
		switch f.Kind {
		case fault.CrashBeforeWrite:
			w.fire(f, p.process.name)
			w.crash(p.process)
			p.answers <- answer{err: errCrashed}
			w.restartAfter(restartTime)
			return
		case fault.LandLate:
			w.fire(f, p.process.name)
			w.crash(p.process)
			p.answers <- answer{err: errCrashed}
			w.restartAfter(restartTime)
			w.heals = append(w.heals, heal{"the late write arrives", func() { w.executeWrite(r, what+" (late)") }})
			return
		case fault.PanicAtWrite:
			w.fire(f, p.process.name)
			p.answers <- answer{panics: true}
			return
		case fault.RefuseWrite:
			w.fire(f, p.process.name)
			response := refusal(f.How, r)
			w.trace.add(p.process.name, what, describe(r)+" -> "+fmt.Sprint(response.Code)+reasonOf(response))
			w.answer(p, response)
			return
		case fault.PauseBeforeWrite:
			w.fire(f, p.process.name)
			w.pause(p, f.For)
			w.writes--
			return
		case fault.TouchBeforeWrite:
			w.fire(f, p.process.name)
			w.touch(r)
		case fault.OccupyName:
			w.fire(f, p.process.name)
			w.occupy(r)
		case fault.MutateWrite:
			w.fire(f, p.process.name)
			w.mutations[w.targetOf(r)] = true
		case fault.StopAtWrite:
			w.fire(f, p.process.name)
			w.stop(p.process)
			w.restartAfter(restartTime)
		case fault.SecondLeader:
			w.fire(f, p.process.name)
			w.secondLeader(p.process)
		case fault.JumpClock:
			w.fire(f, p.process.name)
			w.jump(p.process, f.For)
		case fault.Withhold:
			w.fire(f, p.process.name)
			w.withhold(f.Of)
		}
	}
	before := w.contentBefore(r)
	response := w.executeWrite(r, what)
	w.answerWrite(n, p, faults, before, response)
}

// answerWrite hands the answer of a write over, and lets the faults strike that come after it.
func (w *World) answerWrite(n int, p *parked, faults []*pending, before []byte, response *apiserver.Response) {
	r := p.request
	ok := response.Code < 300
	a := answer{response: response}
	for _, f := range faults {
		if f.fired {
			continue
		}
		switch f.Kind {
		case fault.CrashAfterWrite, fault.RestartInPast:
			w.fire(f, p.process.name)
			if f.Kind == fault.RestartInPast {
				w.pasts = append(w.pasts, past{kind: f.Of, by: f.By})
			}
			w.crash(p.process)
			a = answer{err: errCrashed}
			w.restartAfter(restartTime)
		case fault.LoseWriteAnswer:
			w.fire(f, p.process.name)
			a = lostAnswer(f.How, r)
		case fault.Recreate, fault.DeleteAndCreate:
			w.fire(f, "user")
			w.recreate(f.Of, f.Kind == fault.DeleteAndCreate)
		case fault.Vanish:
			if ok {
				w.fire(f, "user")
				w.vanish(r)
			}
		case fault.WipeStatus:
			w.fire(f, "other")
			w.wipeStatus(f.Of)
		case fault.StripAnnotations:
			w.fire(f, "other")
			w.stripAnnotations(f.Of)
		case fault.Fight:
			if ok && len(before) > 0 {
				w.fire(f, "other")
				w.fights[w.targetOf(r)] = &fight{target: w.targetOf(r), before: before, rounds: fightRounds}
			}
		}
	}
	w.goOnFighting(r)
	p.answers <- a
}

// executeWrite lets the server do a write, with what faults make of it.
func (w *World) executeWrite(r *apiserver.Request, what string) *apiserver.Response {
	w.active()
	w.checkWrite(r)
	theirs := w.isForeign(r)
	response := w.execute(r, describe(r), what)
	if theirs && response.Code < 300 {
		w.violate(oracle.ForeignUntouched, fmt.Sprintf("%s: the object was created by somebody else, and the operator is not its owner", describe(r)))
	}
	if response.Code < 300 && w.mutations[w.targetOf(r)] {
		w.mutate(r)
	}
	return response
}

func (w *World) injectRead(n int, p *parked) {
	what := fmt.Sprintf("read %d", n)
	w.catalog.noteRead(n, p.request)
	for _, f := range w.due(fault.AtRead, n, "") {
		w.fire(f, p.process.name)
		switch f.Kind {
		case fault.PanicAtRead:
			p.answers <- answer{panics: true}
			return
		case fault.RefuseRead:
			if f.How == "timeout" {
				p.answers <- lostAnswer("timeout", p.request)
				return
			}
			w.answer(p, refusal(f.How, p.request))
			return
		}
	}
	if response := w.pastList(p); response != nil {
		w.answer(p, response)
		return
	}
	w.answer(p, w.execute(p.request, describe(p.request), what))
}

func (w *World) injectCall(n int, p *parked) {
	w.catalog.noteCall(n, p.call)
	if o := w.outageOf(p.call.System); o != nil {
		w.trace.add(p.process.name, fmt.Sprintf("call %d", n), p.call.String()+" -> out of order")
		o.blocked = append(o.blocked, p.call.Owner)
		p.answers <- answer{err: ErrUnavailable}
		return
	}
	faults := w.due(fault.AtCall, n, "")
	for _, f := range faults {
		if w.injectBeforeCall(n, f, p) {
			return
		}
	}
	err := w.callOutside(n, p)
	a := answer{err: err}
	for _, f := range faults {
		if f.fired {
			continue
		}
		switch f.Kind {
		case fault.CrashAfterCall:
			w.fire(f, p.process.name)
			w.crash(p.process)
			w.restartAfter(restartTime)
			a = answer{err: errCrashed}
		case fault.LoseCallAnswer:
			w.fire(f, p.process.name)
			a = answer{err: ErrLost}
		case fault.Drift:
			w.fire(f, "other")
			w.drift(p.call)
		}
	}
	p.answers <- a
}

// injectBeforeCall lets a fault strike before a call, and reports whether the call is over with
// that.
func (w *World) injectBeforeCall(n int, f *pending, p *parked) bool {
	noted := func() { w.fire(f, p.process.name) }
	switch f.Kind {
	case fault.CrashBeforeCall, fault.CrashInsideCall:
		noted()
		w.crash(p.process)
		p.answers <- answer{err: errCrashed}
		w.restartAfter(restartTime)
		if f.Kind == fault.CrashInsideCall {
			w.after(insideTime, func() {
				if err := w.callOutside(n, p); err != nil {
					w.trace.add("sim", "call", "the late call had no effect: "+err.Error())
				}
			})
		}
		return true
	case fault.FailCall:
		noted()
		p.answers <- answer{err: ErrUnavailable}
		return true
	case fault.ThrottleCall:
		noted()
		p.answers <- answer{err: ErrThrottled}
		return true
	case fault.PanicAtCall:
		noted()
		p.answers <- answer{panics: true}
		return true
	case fault.Outage, fault.OutageUntilIdle:
		noted()
		o := &outage{system: p.call.System, blocked: nil}
		o.blocked = append(o.blocked, p.call.Owner)
		w.outages = append(w.outages, *o)
		i := len(w.outages) - 1
		if f.Kind == fault.Outage {
			w.after(f.For, func() { w.outages[i].over = true; w.slowDown(f.For) })
		} else {
			w.heals = append(w.heals, heal{"the outage of " + p.call.System + " ends", func() {
				w.checkSaysWhy(p.call.System + " does not answer")
				w.outages[i].over = true
				w.slowDown(w.quiet)
			}})
		}
		p.answers <- answer{err: ErrUnavailable}
		return true
	case fault.SlowCall, fault.HangCall:
		noted()
		d := f.For
		if f.Kind == fault.HangCall {
			d = hangTime
		}
		p.heldFor = time.Now().Add(d)
		w.mu.Lock()
		w.parked = append(w.parked, p)
		w.mu.Unlock()
		w.calls--
		w.after(d+time.Second, func() {})
		return true
	}
	return false
}

// injectEvent reports whether a fault has taken an event over.
func (w *World) injectEvent(o *watch, kind string, n int, event apiserver.Event) bool {
	w.catalog.noteEvent(kind, n, event)
	taken := false
	for _, f := range w.due(fault.AtEvent, n, kind) {
		w.fire(f, o.process.name)
		switch f.Kind {
		case fault.DelayWatch:
			w.behind(kind, f.By)
			o.held = append([]apiserver.Event{event}, o.held...)
			w.events[kind]--
			taken = true
		case fault.MissEvent:
			w.trace.add(o.process.name, "event", "missed: "+event.Type+" "+objectName(event.Resource, event.Namespace, event.Name))
			w.after(missedTime, func() { w.expire(kind) })
			taken = true
		case fault.DuplicateEvent:
			w.push(o, event)
		case fault.DelayEvent:
			o.delayed, o.delayEnd = &event, time.Now().Add(delayTime)
			w.after(delayTime, func() {})
			taken = true
		case fault.CloseWatch:
			w.push(o, event)
			w.close(kind)
			taken = true
		case fault.ExpireWatch:
			w.push(o, event)
			w.expire(kind)
			taken = true
		}
	}
	return taken
}

// behind makes the watches of a kind stay behind for a while.
func (w *World) behind(kind string, by int) {
	for _, o := range w.watchesOf(kind) {
		o.lag, o.lagEnds = by, time.Now().Add(lagTime)
	}
	w.after(lagTime, func() {
		for _, o := range w.watchesOf(kind) {
			o.lag = 0
		}
	})
}

// close ends the watches of a kind, as a load balancer does: the client watches again from where it
// was.
func (w *World) close(kind string) {
	for _, o := range w.watchesOf(kind) {
		w.endings = append(w.endings, func() { o.body.end(io.EOF) })
	}
}

// expire ends the watches of a kind with 410 Gone: the client has to list again.
func (w *World) expire(kind string) {
	for _, o := range w.watchesOf(kind) {
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusGone,
			Reason: metav1.StatusReasonExpired, Message: "too old resource version",
		}
		data := mustJSON(metav1.WatchEvent{Type: "ERROR", Object: rawExtension(status)})
		w.endings = append(w.endings, func() {
			o.body.push(append(data, '\n'))
			o.body.end(io.EOF)
		})
	}
}

// outage is a time in which an external system does not answer.
type outage struct {
	system  string
	over    bool
	blocked []uidOf
}

func (w *World) outageOf(system string) *outage {
	for i := range w.outages {
		if o := &w.outages[i]; o.system == system && !o.over {
			return o
		}
	}
	return nil
}

// slowDown makes the world wait longer for rest, after something has failed for so long: whoever
// backs off exponentially comes back later.
func (w *World) slowDown(d time.Duration) {
	w.quiet = max(w.quiet, 2*d+w.workload.quiet(), backoffCap)
}

// backoffCap is how long controller-runtime's rate limiter makes a failing object wait at most, and
// a little more.
const backoffCap = 17 * time.Minute

// pause lets a process stand still.
func (w *World) pause(p *parked, d time.Duration) {
	until := time.Now().Add(d)
	w.paused[p.process] = until
	p.heldFor = until
	w.mu.Lock()
	for _, q := range w.parked {
		if q.process == p.process {
			q.heldFor = until
		}
	}
	w.parked = append(w.parked, p)
	w.mu.Unlock()
	w.after(d, func() { delete(w.paused, p.process) })
}

// secondLeader starts a process beside one, which dies after a while, as one does that has lost its
// lease.
func (w *World) secondLeader(first *Process) {
	w.start(0)
	w.after(leaderTime, func() {
		w.crash(first)
		w.restartAfter(restartTime) // unless the other one is still there
	})
}

func (w *World) jump(p *Process, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.skew += d
}

// past makes the next list of a kind an older one.
type past struct {
	kind string
	by   int
	used bool
}

// refusal is the answer of a server that does not do what it was asked for.
func refusal(how string, r *apiserver.Request) *apiserver.Response {
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure}
	status.Details = &metav1.StatusDetails{Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Resource}
	name := r.Resource.Resource + " " + fmt.Sprintf("%q", r.Name)
	header := jsonHeader()
	switch how {
	case "409":
		status.Code, status.Reason = 409, metav1.StatusReasonConflict
		status.Message = "Operation cannot be fulfilled on " + name + ": the object has been modified; please apply your changes to the latest version and try again"
	case "429":
		status.Code, status.Reason, status.Message = 429, metav1.StatusReasonTooManyRequests, "Too many requests, please try again later."
		status.Details.RetryAfterSeconds = 1
		header.Set("Retry-After", "1")
	case "403":
		status.Code, status.Reason, status.Message = 403, metav1.StatusReasonForbidden, name+` is forbidden: User "operator" cannot `+r.Verb+" this resource"
	case "404":
		status.Code, status.Reason, status.Message = 404, metav1.StatusReasonNotFound, name+" not found"
	case "422":
		status.Code, status.Reason, status.Message = 422, metav1.StatusReasonInvalid, name+" is invalid: spec: Invalid value: refused by the simulation"
	case "webhook":
		status.Code, status.Reason, status.Message = 403, metav1.StatusReasonForbidden, `admission webhook "sim.ctrlkit.dev" denied the request: refused by the simulation`
	case "timeout":
		status.Code, status.Reason, status.Message = 504, metav1.StatusReasonTimeout, "the server was unable to return a response in the time allotted, but may still be processing the request"
	default:
		status.Code, status.Reason, status.Message = 500, metav1.StatusReasonInternalError, "Internal error occurred: refused by the simulation"
	}
	body, err := json.Marshal(status)
	if err != nil {
		body = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	return &apiserver.Response{Code: int(status.Code), Header: header, Body: body}
}

// lostAnswer is what a client sees of a write that has arrived.
func lostAnswer(how string, r *apiserver.Request) answer {
	switch how {
	case "reset":
		return answer{err: fmt.Errorf("read tcp: %w", syscall.ECONNRESET)}
	case "timeout":
		return answer{response: refusal("timeout", r)}
	}
	return answer{response: refusal("500", r)}
}

func jsonHeader() http.Header { return http.Header{"Content-Type": []string{"application/json"}} }

// reasonOf returns the reason of a Status that says no.
func reasonOf(r *apiserver.Response) string {
	if r.Code < 400 {
		return ""
	}
	status := struct{ Reason, Message string }{}
	if err := json.Unmarshal(r.Body, &status); err != nil {
		return ""
	}
	return " " + strings.TrimSpace(status.Reason+": "+status.Message)
}

var errNoObject = errors.New("no such object")
