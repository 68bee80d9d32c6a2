// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// How long things last.
const (
	delayWatchTime = 3 * time.Second // how long a watch stays behind at most
	delayEventTime = 2 * time.Second // how long a watch waits whose event others overtake
	missedTime     = 3 * time.Second // from a missed event to the next list
)

// protobufPrefix begins an object in protobuf.
var protobufPrefix = []byte("k8s\x00")

// errClosed ends a watch as the API server does it after its timeoutSeconds: the answer is complete.
var errClosed = errors.New("the watch is closed")

// A lag is a watch of a kind that stays behind.
type lag struct {
	by      int // how many changes
	until   time.Time
	event   int // the event that it began at
	changes int // how many changes of the kind there had been then
}

// watch answers a watch. Its events are counted by kind, and faults strike at them.
func (b *boundary) watch(w http.ResponseWriter, r *http.Request, next memory.Handler, request *apiserver.Request) {
	kind := request.Resource.GroupResource().String()
	selection, version := selectionOf(request), request.Query.Get("resourceVersion")
	if b.unexpire(request) && version != "" && version != "0" && !request.Query.Has("sendInitialEvents") {
		b.trace.add("operator", "watch", "of "+kind+" -> 410")
		send(w, inject.Refusal("expired", request))
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	events := &watching{ResponseWriter: w, context: ctx, end: end, boundary: b, kind: kind, selection: selection, code: http.StatusOK}
	if request.Query.Has("sendInitialEvents") || version == "" || version == "0" {
		events.first = b.version()
	}
	next(events, r.WithContext(ctx), request)
}

// selectionOf returns what a list or a watch is about.
func selectionOf(r *apiserver.Request) string {
	return r.Path + "?" + r.Query.Get("labelSelector") + "&" + r.Query.Get("fieldSelector")
}

// unexpire reports whether a watch can't continue where it was, which its client learns from the
// answer to a watch, or has known if it lists.
func (b *boundary) unexpire(r *apiserver.Request) bool {
	selection := selectionOf(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	expired := b.expired[selection]
	delete(b.expired, selection)
	return expired
}

// A watching sends the operator the events of a watch.
type watching struct {
	http.ResponseWriter
	context         context.Context //nolint:containedctx // of the request, until the watch ends
	end             func()          // ends the watch, as the API server does after its timeoutSeconds
	boundary        *boundary
	kind, selection string
	// first is the resource version of the cluster when a watch was opened that begins with everything
	// there is. Events of what was there at first are not counted: they say what a list would say.
	first uint64
	code  int
	rest  []byte // the beginning of an event
}

func (w *watching) WriteHeader(code int) { w.code = code; w.ResponseWriter.WriteHeader(code) }

// Unwrap is for [http.ResponseController].
func (w *watching) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watching) Write(p []byte) (int, error) {
	if w.code != http.StatusOK {
		return w.ResponseWriter.Write(p)
	}
	w.rest = append(w.rest, p...)
	for {
		n := w.frame()
		if n == 0 {
			return len(p), nil
		}
		if err := w.send(w.rest[:n]); err != nil {
			return 0, err
		}
		w.rest = w.rest[n:]
	}
}

// binary reports whether the events are in protobuf, each with its length before it.
func (w *watching) binary() bool {
	return strings.HasPrefix(w.Header().Get("Content-Type"), "application/vnd.kubernetes.protobuf")
}

// frame returns the length of the first event of rest; 0 if it is not there as a whole.
func (w *watching) frame() int {
	if !w.binary() {
		return bytes.IndexByte(w.rest, '\n') + 1
	}
	if len(w.rest) < 4 {
		return 0
	}
	if n := 4 + int(binary.BigEndian.Uint32(w.rest)); n <= len(w.rest) {
		return n
	}
	return 0
}

// send sends an event when it may be sent.
func (w *watching) send(frame []byte) error {
	change, object := w.read(frame)
	e := &passing{watching: w}
	if counts := object != nil && change != "BOOKMARK" && change != "ERROR"; counts && versionOf(object) > w.first {
		name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		if err := w.boundary.deliver(e, change, name); err != nil {
			return err
		}
	}
	if e.twice {
		frame = append(append([]byte{}, frame...), frame...)
	}
	if !e.missed {
		if _, err := w.ResponseWriter.Write(frame); err != nil {
			return fmt.Errorf("sending an event: %w", err)
		}
	}
	if e.ends {
		return errClosed
	}
	return nil
}

func versionOf(object metav1.Object) uint64 {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// read returns what an event says, and of which object, of which it returns at least the metadata.
// The object is nil if the event can't be read.
func (w *watching) read(frame []byte) (change string, _ metav1.Object) {
	event := &metav1.WatchEvent{}
	if !w.binary() {
		if json.Unmarshal(frame, event) != nil {
			return "", nil
		}
	} else if event.Unmarshal(frame[4:]) != nil {
		return "", nil
	}
	object := &metav1.PartialObjectMetadata{}
	if raw := event.Object.Raw; !bytes.HasPrefix(raw, protobufPrefix) {
		if json.Unmarshal(raw, object) != nil {
			return event.Type, nil
		}
	} else { // the metadata are the first field of each kind
		unknown := &runtime.Unknown{}
		if unknown.Unmarshal(raw[len(protobufPrefix):]) != nil || object.Unmarshal(unknown.Raw) != nil {
			return event.Type, nil
		}
	}
	return event.Type, object
}

// A passing is an event on its way to the operator, and what faults do to it.
type passing struct {
	*watching
	number int
	text   string // what has happened, in the trace
	behind *lag   // of its kind; nil if no watch of it is behind
	late   bool   // those of other watches overtake it
	missed bool
	twice  bool
	ends   bool // it is the last one of its watch
}

// deliver counts an event, and waits until the operator may see it.
func (b *boundary) deliver(e *passing, change, name string) error {
	if err := b.event(e, change, name); err != nil {
		return err
	}
	if e.behind != nil && b.wait(e) != nil || e.late && b.letOvertake(e) != nil {
		return e.context.Err()
	}
	text := e.text
	switch {
	case e.missed:
		text = "missed: " + text
	case e.twice:
		b.trace.add("operator", "event", text)
	}
	b.trace.add("operator", "event", text)
	return nil
}

// event counts an event, and lets faults begin at it.
func (b *boundary) event(e *passing, change, name string) error {
	changes := b.changes(e.kind)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errClosed
	}
	b.events[e.kind]++
	e.number = b.events[e.kind]
	e.text = fmt.Sprintf("%d of %s: %s %s", e.number, e.kind, strings.ToLower(change), name)
	b.places, b.repeated = append(b.places, fault.Place{Point: fault.AtEvent, At: e.number, Of: e.kind}), append(b.repeated, false)
	b.names = append(b.names, "event "+change+" "+e.kind)
	for i, f := range b.plan.Faults {
		if b.suspended || f.Kind.Point() != fault.AtEvent || f.At != e.number || f.Of != e.kind {
			continue
		}
		b.fired[i] = true
		b.trace.add("sim", "fault", f.String())
		b.begin(e, f, changes)
	}
	e.behind = b.lags[e.kind]
	return nil
}

// begin lets a fault begin at an event.
func (b *boundary) begin(e *passing, f fault.Fault, changes int) {
	switch f.Kind {
	case fault.DelayWatch:
		b.lags[e.kind] = &lag{by: f.By, until: time.Now().Add(delayWatchTime), event: e.number, changes: changes}
	case fault.DelayEvent:
		e.late = true
		b.hide(delayEventTime)
	case fault.DuplicateEvent:
		e.twice = true
	case fault.MissEvent:
		e.missed = true
		b.hide(missedTime)
		time.AfterFunc(missedTime, func() { b.relist(e.watching) })
	case fault.ExpireWatch:
		b.expired[e.selection], e.ends = true, true
	case fault.CloseWatch:
		e.ends = true
	}
}

// hide notes that the operator may not see the present state for some time.
func (b *boundary) hide(d time.Duration) {
	if until := time.Now().Add(d); until.After(b.hidden) {
		b.hidden = until
	}
}

// relist ends a watch that has missed an event so that its client lists again, unless it has ended.
func (b *boundary) relist(w *watching) {
	if w.context.Err() != nil {
		return
	}
	b.mu.Lock()
	b.expired[w.selection] = true
	b.mu.Unlock()
	w.end()
	b.awake()
}

// letOvertake waits while the events of other watches go on. Those of the same watch wait too: an API
// server sends them in the order of the changes.
func (b *boundary) letOvertake(e *passing) error {
	select {
	case <-e.context.Done():
		return e.context.Err()
	case <-time.After(delayEventTime):
	}
	b.awake()
	return nil
}

// wait waits until a watch that lags may send an event: there are as many changes after it as the
// watch is behind, or the time is over.
func (b *boundary) wait(e *passing) error {
	behind := e.behind
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	waited := false
	for time.Now().Before(behind.until) && b.changes(e.kind)-behind.changes < e.number-behind.event+behind.by {
		waited = true
		select {
		case <-e.context.Done():
			return e.context.Err()
		case <-ticker.C:
		}
	}
	if waited {
		b.awake()
	}
	return nil
}

// lagging reports whether the operator may not see the present state.
func (b *boundary) lagging() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.hidden) {
		return true
	}
	for _, l := range b.lags {
		if time.Now().Before(l.until) {
			return true
		}
	}
	return false
}

// watched reports whether the events of a kind are counted.
func watched(r *apiserver.Request) bool {
	return r.Verb == "watch" && !cluster.Ignored(r.Resource)
}
