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
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// protobufPrefix begins an object in protobuf.
var protobufPrefix = []byte("k8s\x00")

// errClosed ends a watch as the API server does it after its timeoutSeconds: the answer is complete.
var errClosed = errors.New("the watch is closed")

// A lag is the watches of a kind that stay behind.
type lag struct {
	by      int // how many changes
	changes int // how many changes of the kind there were when it began
	passed  int // events since then
}

// watch answers a watch. Its events are counted by kind, and faults strike at them.
func (b *boundary) watch(w http.ResponseWriter, r *http.Request, next memory.Handler, request *apiserver.Request) {
	kind := request.Resource.GroupResource().String()
	version := request.Query.Get("resourceVersion")
	if b.isExpired(request) && version != "" && version != "0" && !request.Query.Has("sendInitialEvents") {
		b.trace.Add(operatorActor, "watch", "of "+kind+" -> 410")
		framing := request.Framing()
		w.Header().Set("Content-Type", framing.ContentType())
		_, _ = w.Write(framing.Frame(inject.Gone())) // an error means that the operator has gone
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	events := &watching{ResponseWriter: w, context: ctx, end: end, boundary: b, kind: kind, selection: selectionOf(request), code: http.StatusOK}
	b.world.do(func() {
		b.open[events] = true
		b.most = max(b.most, len(b.open))
	})
	defer func() { b.world.do(func() { delete(b.open, events) }) }()
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
	expired := b.expired[selection]
	delete(b.expired, selection)
	return expired
}

// isExpired is unexpire at a turn of its own.
func (b *boundary) isExpired(r *apiserver.Request) (expired bool) {
	b.world.do(func() { expired = b.unexpire(r) })
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
	if change != "BOOKMARK" {
		w.boundary.calm.show()
		defer w.boundary.calm.show()
	}
	e := &passing{watching: w, times: 1}
	if counts := object != nil && change != "BOOKMARK" && change != "ERROR"; counts && versionOf(object) > w.first {
		e.text = change + " " + w.kind + " " + object.GetNamespace() + "/" + object.GetName()
		if err := e.deliver("event " + change + " " + w.kind); err != nil {
			return err
		}
	}
	for range e.times {
		if _, err := w.ResponseWriter.Write(frame); err != nil {
			return fmt.Errorf("sending an event: %w", err)
		}
	}
	if w.context.Err() != nil {
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

// A passing is an event on its way to the operator.
type passing struct {
	*watching
	text  string        // what has happened, in the trace
	again bool          // it has to come to the faults again
	times int           // how often it is sent
	late  chan struct{} // closed when those of other watches may have overtaken it; nil if they need not
}

// Push delivers the event.
func (e *passing) Push() {
	e.times++
	e.boundary.trace.Add(operatorActor, "event", e.text)
}

// PutBack makes the event the next one again.
func (e *passing) PutBack() { e.again = true }

// LetOvertake delivers the event after those of other watches that come within a time. Those of the
// same watch wait, too: an API server sends them in the order of the changes.
func (e *passing) LetOvertake(d time.Duration) {
	late := make(chan struct{})
	e.late = late
	e.boundary.world.later.After(d, func() { close(late) })
}

// deliver takes an event to the faults when its watch does not lag, and waits until the operator may
// see it. name is that of the place.
func (e *passing) deliver(name string) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for waited := false; ; waited = true {
		err, passed := error(nil), false
		e.boundary.world.do(func() { passed, err = e.boundary.event(e, name) })
		switch {
		case err != nil:
			return err
		case passed && waited:
			e.boundary.awake()
		}
		if passed {
			break
		}
		select {
		case <-e.context.Done():
			return e.context.Err()
		case <-ticker.C:
		}
	}
	if e.late == nil {
		return nil
	}
	select {
	case <-e.context.Done():
		return e.context.Err()
	case <-e.late:
		e.boundary.world.do(e.Push)
		return nil
	}
}

// event lets the faults of an event strike, unless its watch lags. It reports whether the event is
// through.
func (b *boundary) event(e *passing, name string) (passed bool, err error) {
	l := b.lags[e.kind]
	switch {
	case b.down || e.context.Err() != nil:
		return false, errClosed
	case l != nil && b.changes(e.kind)-l.changes < l.passed+l.by:
		return false, nil
	case l != nil:
		l.passed++
	}
	e.times, e.again = 0, false
	b.place(name, false)
	if !b.world.injector.Event(&inject.Event{Actor: operatorActor, Kind: e.kind, Text: e.text, Stream: e}) {
		e.Push()
	}
	return !e.again, nil
}

// Delay makes the watches of a kind stay some events behind, for a while.
func (b *boundary) Delay(kind string, events int, d time.Duration) {
	l := &lag{by: events, changes: b.changes(kind)}
	b.lags[kind] = l
	b.world.later.After(d, func() {
		if b.lags[kind] == l {
			delete(b.lags, kind)
		}
	})
}

// Close ends the watches of a kind: clients watch again from where they were.
func (b *boundary) Close(kind string) {
	for w := range b.open {
		if w.kind == kind {
			w.end()
		}
	}
}

// Expire ends the watches of a kind, whose clients learn when they watch again that they have to list.
func (b *boundary) Expire(kind string) {
	for w := range b.open {
		if w.kind == kind {
			b.expired[w.selection] = true
		}
	}
	b.Close(kind)
}

// watched reports whether the events of a kind are counted.
func watched(r *apiserver.Request) bool {
	return r.Verb == "watch" && !cluster.Ignored(r.Resource)
}
