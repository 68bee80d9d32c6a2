// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An Event is an event of a watch.
type Event struct {
	Type            string // ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
	Resource        schema.GroupVersionResource
	Namespace, Name string
	ResourceVersion string
	Object          []byte // JSON
}

// Frame returns the event as a watch sends it: a line of JSON.
func (e Event) Frame() []byte {
	frame := make([]byte, 0, len(e.Object)+40)
	frame = append(frame, `{"type":"`+e.Type+`","object":`...)
	frame = append(frame, e.Object...)
	return append(frame, "}\n"...)
}

// Watch is an open watch. Its events are pending until Next returns them.
type Watch struct {
	server    *Server
	kind      *kind
	selection selection
	bookmarks bool
	timeout   time.Duration
	table     func(object []byte) []byte // nil unless the client wants tables
	pending   []Event
	onPending func()
	stopped   bool
	ended     bool // by the server
}

// Watch opens a watch. The initial events, if it asks for them, are pending when Watch returns. If
// the request is refused, Watch returns the answer instead.
func (s *Server) Watch(r *Request) (*Watch, *Response) {
	s.mu.Lock()
	defer s.unlock()
	if failure := s.authorize(r); failure != nil {
		return nil, failure.response()
	}
	k, failure := s.kindFor(r)
	if failure != nil {
		return nil, failure.response()
	}
	if failure := s.checkRequest(k, r); failure != nil {
		return nil, failure.response()
	}
	sel, failure := newSelection(k, r)
	if failure != nil {
		return nil, failure.response()
	}
	w := &Watch{server: s, kind: k, selection: sel, bookmarks: r.isSet("allowWatchBookmarks")}
	if seconds, err := strconv.ParseInt(r.Query.Get("timeoutSeconds"), 10, 32); err == nil {
		w.timeout = time.Duration(seconds) * time.Second
	}
	var err error
	if w.table, err = k.tableOf(r); err != nil {
		return nil, fail(err).response()
	}
	if failure := s.startWatch(w, r); failure != nil {
		return nil, failure.response()
	}
	s.store.watches = append(s.store.watches, w)
	return w, nil
}

// initialEventsEnd is the annotation of the bookmark after the initial events.
const initialEventsEnd = metav1.InitialEventsAnnotationKey

func (s *Server) startWatch(w *Watch, r *Request) *failure {
	text := r.Query.Get("resourceVersion")
	if r.isSet("sendInitialEvents") {
		w.addAll()
		w.add(w.bookmark(s.store.revision, true))
		return nil
	}
	if text == "" || text == "0" {
		if !r.Query.Has("sendInitialEvents") {
			w.addAll()
		}
		return nil
	}
	from, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fail(apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", text, err)))
	}
	if from < s.store.expired {
		gone := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.store.expired))
		w.add(Event{Type: "ERROR", Resource: w.kind.gvr, Object: (&failure{gone.ErrStatus}).response().Body})
		return nil
	}
	start, _ := slices.BinarySearchFunc(s.store.history, from+1, func(e event, revision uint64) int {
		return int(int64(e.revision) - int64(revision))
	})
	for _, e := range s.store.history[start:] {
		w.offer(e)
	}
	return nil
}

// addAll adds all objects of the selection as initial events.
func (w *Watch) addAll() {
	for _, v := range w.server.store.table(w.kind).sorted(w.selection.namespace) {
		if w.selection.matches(w.kind, v) {
			w.add(w.eventOf("ADDED", v))
		}
	}
}

func (w *Watch) eventOf(kind string, v *version) Event {
	object := v.encode(w.kind.gvk)
	if w.table != nil {
		object = w.table(object)
	}
	return Event{
		Type: kind, Resource: w.kind.gvr, Namespace: v.namespace, Name: v.name, ResourceVersion: strconv.FormatUint(v.revision, 10), Object: object,
	}
}

func (w *Watch) bookmark(revision uint64, initial bool) Event {
	metadata := map[string]any{"resourceVersion": strconv.FormatUint(revision, 10), "creationTimestamp": nil}
	if initial {
		metadata["annotations"] = map[string]any{initialEventsEnd: "true"}
	}
	object := map[string]any{"apiVersion": w.kind.gvr.GroupVersion().String(), "kind": w.kind.gvk.Kind, "metadata": metadata}
	return Event{Type: "BOOKMARK", Resource: w.kind.gvr, ResourceVersion: strconv.FormatUint(revision, 10), Object: encode(object)}
}

// offer adds the event that a change means for the watch. As upstream, an object that starts to
// match the selection is ADDED, and one that no longer matches is DELETED.
func (w *Watch) offer(e event) {
	if w.stopped || e.kind.storage != w.kind.storage {
		return
	}
	was, is := w.selection.matches(w.kind, e.old), w.selection.matches(w.kind, e.new)
	switch {
	case was && is:
		w.add(w.eventOf("MODIFIED", e.new))
	case is:
		w.add(w.eventOf("ADDED", e.new))
	case was && e.new == nil:
		w.add(w.eventOf("DELETED", e.last))
	case was:
		departed := *e.old
		departed.content = shallow(e.old.content)
		departed.content["metadata"] = shallow(metadata(e.old.content))
		setResourceVersion(departed.content, e.revision)
		departed.revision, departed.encoded = e.revision, nil
		w.add(w.eventOf("DELETED", &departed))
	}
}

func (w *Watch) add(e Event) {
	w.pending = append(w.pending, e)
	if w.onPending != nil {
		w.server.store.after = append(w.server.store.after, w.onPending)
	}
}

// Next removes and returns the first pending event. It reports false if none is pending; it does
// not block.
func (w *Watch) Next() (Event, bool) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if len(w.pending) == 0 {
		return Event{}, false
	}
	e := w.pending[0]
	w.pending = w.pending[1:]
	return e, true
}

// Ended reports whether the server has ended the watch, because its kind is not served any more.
// Events that are pending remain.
func (w *Watch) Ended() bool {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.ended
}

// endWatches ends the watches of the objects in a storage.
func (s *store) endWatches(storage schema.GroupResource) {
	for _, w := range s.watches {
		if w.kind.storage != storage {
			continue
		}
		w.ended = true
		if w.onPending != nil {
			s.after = append(s.after, w.onPending)
		}
	}
}

// Pending returns how many events wait.
func (w *Watch) Pending() int {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return len(w.pending)
}

// OnPending sets the function that is called whenever events were added. The server is not locked
// during the call.
func (w *Watch) OnPending(f func()) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.onPending = f
}

// Timeout returns how long the watch may last, as the request asks for it, or zero. The caller has
// to stop the watch then: the server has no timers.
func (w *Watch) Timeout() time.Duration { return w.timeout }

// Stop ends the watch. Events that are pending remain.
func (w *Watch) Stop() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.stopped = true
	w.server.store.watches = slices.DeleteFunc(w.server.store.watches, func(other *Watch) bool { return other == w })
}
