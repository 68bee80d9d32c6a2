// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// The driver makes the world go round, one thing at a time. Everything that leaves a process (a request, a call) is parked. When nothing in
// the bubble can go on by itself, the driver lets the first thing happen that can: it delivers a watch event, answers what is parked, or does
// a piece of the server's background work. When there is nothing to do either, it waits, and virtual time passes. So the order of everything
// that the outside can tell apart is decided here, and does not depend on how goroutines are scheduled.

// latency is how long the API server takes for a request, in virtual time.
const latency = time.Millisecond

type parkedKind int

const (
	parkedRequest parkedKind = iota + 1
	parkedCall
	parkedStory // something that the script does
)

// parked is what waits for the driver.
type parked struct {
	process *Process // nil: the script
	ctx     context.Context
	kind    parkedKind
	key     string // orders what was parked at the same time
	round   uint64 // when it was parked, in steps of the driver
	answers chan answer

	request *apiserver.Request
	call    *Call
	do      func() error
	heldFor time.Time // not before
}

// answer is what a parked one gets.
type answer struct {
	response *apiserver.Response
	body     *watchBody
	err      error
	panics   bool
}

// park waits until the driver has answered.
func (w *World) park(p *parked) answer {
	p.answers = make(chan answer, 1)
	w.mu.Lock()
	if p.process != nil && p.process.dead {
		w.mu.Unlock()
		return answer{err: w.haunt(p.ctx)}
	}
	p.round = w.round
	w.parked = append(w.parked, p)
	w.mu.Unlock()
	w.wakeUp()
	select {
	case a := <-p.answers:
		return a
	case <-p.ctx.Done():
		w.unpark(p)
		return answer{err: p.ctx.Err()}
	}
}

// haunt keeps the goroutines of a crashed process from spinning.
func (w *World) haunt(ctx context.Context) error {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return errCrashed
}

func (w *World) unpark(p *parked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parked = slices.DeleteFunc(w.parked, func(other *parked) bool { return other == p })
}

func (w *World) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// drive runs the world until the story has ended.
func (w *World) drive() {
	for !w.over {
		synctest.Wait()
		if !w.step() {
			w.idle()
		}
	}
}

// step lets one thing happen, and reports whether there was one.
func (w *World) step() bool {
	w.mu.Lock()
	w.round++
	w.mu.Unlock()
	if w.runTimers() {
		return true // what a timer has started, such as a process, runs now: it must come to rest before anything is chosen
	}
	if len(w.endings) > 0 {
		// One after the other: each makes its client wait for a random time.
		ending := w.endings[0]
		w.endings = w.endings[1:]
		ending()
		return true
	}
	var choices [3]func() bool
	choices[0], choices[1], choices[2] = w.deliver, w.serveNext, w.serverWork
	if w.order != nil {
		w.order.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
	}
	for _, choice := range choices {
		if choice() {
			return true
		}
	}
	return false
}

// backgroundTime is how long the cluster's own controllers take to notice something, in virtual time.
const backgroundTime = 500 * time.Millisecond

func (w *World) serverWork() bool {
	if !w.server.Pending() {
		return false
	}
	switch now := time.Now(); {
	case w.workAt.IsZero():
		w.workAt = now.Add(backgroundTime)
		return false
	case now.Before(w.workAt):
		return false
	}
	worked := false
	for w.server.Work() {
		worked = true
	}
	w.workAt = time.Time{}
	if worked {
		w.active()
	}
	return worked
}

// idle waits until something is parked or due.
func (w *World) idle() {
	if w.settled() {
		return
	}
	next := w.nextTimer()
	timer := time.NewTimer(next)
	defer timer.Stop()
	select {
	case <-w.wake:
	case <-timer.C:
	}
}

// timer is something that the world itself does later.
type timer struct {
	at   time.Time
	do   func()
	rest bool // the world is not at rest before it was done
}

func (w *World) after(d time.Duration, do func()) {
	w.timers = append(w.timers, timer{at: time.Now().Add(d), do: do, rest: true})
}

// runTimers does what is due, and reports whether there was anything.
func (w *World) runTimers() bool {
	now, ran := time.Now(), false
	for i := 0; i < len(w.timers); i++ {
		if t := w.timers[i]; !t.at.After(now) {
			w.timers = slices.Delete(w.timers, i, i+1)
			i--
			t.do()
			w.active()
			ran = true
		}
	}
	return ran
}

// nextTimer is how long nothing of the world itself is due.
func (w *World) nextTimer() time.Duration {
	now := time.Now()
	next := time.Hour
	for _, t := range w.timers {
		next = min(next, t.at.Sub(now))
	}
	if !w.workAt.IsZero() {
		next = min(next, w.workAt.Sub(now))
	}
	w.mu.Lock()
	for _, p := range w.parked {
		if p.heldFor.After(now) {
			next = min(next, p.heldFor.Sub(now))
		}
	}
	w.mu.Unlock()
	if w.settling != nil {
		// When it is past, something else is still due.
		if rest := w.restAt().Sub(now); rest > 0 {
			next = min(next, rest)
		}
	}
	return next
}

// serveNext answers the first of what is parked.
func (w *World) serveNext() bool {
	p := w.nextParked()
	if p == nil {
		return false
	}
	if p.kind != parkedStory {
		time.Sleep(latency)
		synctest.Wait()
	}
	w.mu.Lock()
	waits := slices.Contains(w.parked, p)
	w.parked = slices.DeleteFunc(w.parked, func(other *parked) bool { return other == p })
	w.mu.Unlock()
	if !waits || p.ctx.Err() != nil {
		return true // it has given up in the meantime
	}
	switch p.kind {
	case parkedStory:
		p.answers <- answer{err: p.do()}
	case parkedCall:
		w.serveCall(p)
	default:
		w.serveRequest(p)
	}
	return true
}

func (w *World) nextParked() *parked {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	slices.SortStableFunc(w.parked, func(a, b *parked) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.actor(), b.actor()), cmp.Compare(a.key, b.key))
	})
	ready := make([]*parked, 0, len(w.parked))
	for _, p := range w.parked {
		if !p.heldFor.After(now) && (p.process == nil || !w.isPaused(p.process)) {
			ready = append(ready, p)
		}
	}
	switch {
	case len(ready) == 0:
		return nil
	case w.order != nil:
		return ready[w.order.IntN(len(ready))]
	}
	return ready[0]
}

func (p *parked) actor() string {
	if p.process == nil {
		return "user"
	}
	return p.process.name
}

// serveRequest lets the API server answer, unless a fault is in the way.
func (w *World) serveRequest(p *parked) {
	w.requests++
	if w.tooManyRequests() {
		p.answers <- answer{err: errAborted}
		return
	}
	switch {
	case p.request.Verb == "watch":
		w.openWatch(p)
	case w.countsAsWrite(p.request):
		w.writes++
		w.injectWrite(w.writes, p)
	case isRead(p.request):
		w.reads++
		w.injectRead(w.reads, p)
	default:
		w.answer(p, w.execute(p.request, describe(p.request), "request"))
	}
}

// answer hands an answer of the server to the one who asked.
func (w *World) answer(p *parked, response *apiserver.Response) {
	p.answers <- answer{response: response}
}

// execute lets the server answer a request, and notes it.
func (w *World) execute(r *apiserver.Request, text, what string) *apiserver.Response {
	response := w.server.Serve(r)
	w.trace.add(r.Actor, what, text+" -> "+strconv.Itoa(response.Code)+reasonOf(response))
	return response
}

// ignored are kinds that operators write beside their work: neither places for faults nor part of what worlds are compared by.
func ignored(r schema.GroupVersionResource) bool {
	switch r.Resource {
	case "events":
		return r.Group == "" || r.Group == "events.k8s.io"
	case "leases":
		return r.Group == "coordination.k8s.io"
	}
	return false
}

func (w *World) countsAsWrite(r *apiserver.Request) bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !ignored(r.Resource) && !r.DryRun
	}
	return false
}

func isRead(r *apiserver.Request) bool {
	return (r.Verb == "get" || r.Verb == "list") && !ignored(r.Resource)
}

// watch is an open watch of a process.
type watch struct {
	process  *Process
	resource schema.GroupVersionResource
	id       int
	stream   *apiserver.Watch
	body     *watchBody
	started  bool // the initial events are through

	held     []apiserver.Event // taken from the stream, not delivered
	lag      int               // how many events it stays behind, until lagEnds
	lagEnds  time.Time
	delayed  *apiserver.Event // overtaken by the others, until delayEnds
	delayEnd time.Time
}

func (w *World) openWatch(p *parked) {
	if w.startsInPast(p.request) {
		// Initial events can't come from the past: the client falls back to a list, which can.
		p.answers <- answer{response: refusal("422", p.request)}
		return
	}
	stream, refused := w.server.Watch(p.request)
	if refused != nil {
		w.trace.add(p.request.Actor, "watch", describe(p.request)+" -> "+strconv.Itoa(refused.Code)+reasonOf(refused))
		p.answers <- answer{response: refused}
		return
	}
	w.trace.add(p.request.Actor, "watch", describe(p.request))
	w.watchedEver[p.request.Resource.GroupResource().String()] = true
	w.watchCount++
	o := &watch{process: p.process, resource: p.request.Resource, id: w.watchCount, stream: stream, body: newWatchBody(p.ctx)}
	if p.request.Query.Get("sendInitialEvents") != "true" {
		o.started = true
	}
	w.applyPast(o)
	w.watches = append(w.watches, o)
	p.answers <- answer{response: &apiserver.Response{Code: 200, Header: jsonHeader()}, body: o.body}
}

// deliver pushes one watch event to the first watch that has one.
func (w *World) deliver() bool {
	w.watches = slices.DeleteFunc(w.watches, func(o *watch) bool {
		if o.body.gone() || w.isDead(o.process) {
			o.stream.Stop()
			return true
		}
		return false
	})
	start := 0
	if w.order != nil && len(w.watches) > 0 {
		start = w.order.IntN(len(w.watches))
	}
	for i := range w.watches {
		if o := w.watches[(start+i)%len(w.watches)]; w.deliverTo(o) {
			return true
		}
	}
	return false
}

// deliverTo delivers the next event of one watch, if there is one that is not held back.
func (w *World) deliverTo(o *watch) bool {
	if w.isPaused(o.process) {
		return false
	}
	for {
		event, ok := o.stream.Next()
		if !ok {
			break
		}
		o.held = append(o.held, event)
	}
	now := time.Now()
	if o.delayed != nil && !now.Before(o.delayEnd) {
		event := *o.delayed
		o.delayed = nil
		w.push(o, event)
		return true
	}
	if len(o.held) == 0 || o.delayed != nil {
		return false
	}
	if o.lag > 0 && len(o.held) <= o.lag && now.Before(o.lagEnds) {
		return false
	}
	event := o.held[0]
	o.held = o.held[1:]
	switch event.Type {
	case "BOOKMARK", "ERROR":
		o.started = true
		o.body.push(event.Frame())
		if event.Type == "ERROR" {
			o.body.end(io.EOF)
		}
		return true
	}
	if !o.started {
		o.body.push(event.Frame())
		return true
	}
	kind := event.Resource.GroupResource().String()
	w.events[kind]++
	if !w.injectEvent(o, kind, w.events[kind], event) {
		w.push(o, event)
	}
	return true
}

func (w *World) push(o *watch, event apiserver.Event) {
	w.trace.add(o.process.name, "event", event.Type+" "+objectName(event.Resource, event.Namespace, event.Name))
	o.body.push(event.Frame())
}

// watchesOf returns the open watches of a kind.
func (w *World) watchesOf(kind string) []*watch {
	var list []*watch
	for _, o := range w.watches {
		if o.resource.GroupResource().String() == kind {
			list = append(list, o)
		}
	}
	return list
}

// serveCall lets a call of an external system happen, unless a fault is in the way.
func (w *World) serveCall(p *parked) {
	if p.call.latency > 0 && p.heldFor.IsZero() {
		p.heldFor = time.Now().Add(p.call.latency)
		w.mu.Lock()
		w.parked = append(w.parked, p)
		w.mu.Unlock()
		return
	}
	w.requests++
	if w.tooManyRequests() {
		p.answers <- answer{err: errAborted}
		return
	}
	w.calls++
	w.injectCall(w.calls, p)
}

// callOutside lets the call have its effect, and notes it.
func (w *World) callOutside(n int, p *parked) error {
	if p.call.Mutates {
		w.active()
		w.checkBeforeCall(p)
	}
	err := p.do()
	result := "ok"
	if err != nil {
		result = err.Error()
	}
	w.trace.add(p.process.name, "call "+strconv.Itoa(n), p.call.String()+" -> "+result)
	if p.call.Mutates && err == nil {
		w.checkAfterCall(p)
	}
	return err
}

// Rest.

// active notes that something was done by which rest is measured.
func (w *World) active() { w.lastActivity = time.Now() }

func (w *World) restAt() time.Time {
	return w.lastActivity.Add(w.quiet)
}

// settle is a wait for rest.
type settle struct {
	since time.Time
	done  chan error
}

// settled ends a wait for rest when the world is at rest, or when patience has ended. It reports whether it did something.
func (w *World) settled() bool {
	if w.settling == nil {
		return false
	}
	now := time.Now()
	switch {
	case now.Sub(w.settling.since) > w.workload.patience():
		w.violate(oracle.BecomesIdle, fmt.Sprintf("the operator has not come to rest within %s", w.workload.patience()))
		w.settling.done <- errAborted
		w.abort()
	case now.Before(w.restAt()) || slices.ContainsFunc(w.timers, func(t timer) bool { return t.rest }):
		return false
	case w.heal():
		w.active()
		return true
	default:
		w.settling.done <- nil
	}
	w.settling = nil
	return true
}

// errAborted is what everything gets in a run that can't go on.
var errAborted = errors.New("sim: the run was ended")

func newOrder(seed uint64) *rand.Rand {
	if seed == 0 {
		return nil
	}
	return rand.New(rand.NewPCG(seed, 0x5bd1e995))
}
