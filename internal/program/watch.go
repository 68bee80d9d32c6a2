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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ctrlkit/ctrlkit/internal/judge/cluster"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// delayWatchTime is how long a watch stays behind at most.
const delayWatchTime = 3 * time.Second

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
func (b *boundary) watch(w http.ResponseWriter, r *http.Request, next http.Handler, request *apiserver.Request) {
	kind := request.Resource.GroupResource().String()
	selection := request.Path + "?" + request.Query.Get("labelSelector") + "&" + request.Query.Get("fieldSelector")
	version := request.Query.Get("resourceVersion")
	b.mu.Lock()
	expired := b.expired[selection] && version != "" && version != "0" && !request.Query.Has("sendInitialEvents")
	if expired {
		delete(b.expired, selection)
	}
	b.mu.Unlock()
	if expired {
		b.trace.add("operator", "watch", "of "+kind+" -> 410")
		answer(w, apierrors.NewResourceExpired("too old resource version: "+version))
		return
	}
	events := &watching{ResponseWriter: w, context: r.Context(), boundary: b, kind: kind, selection: selection, code: http.StatusOK}
	if request.Query.Has("sendInitialEvents") || version == "" || version == "0" {
		events.first = b.version()
	}
	next.ServeHTTP(events, r)
}

// A watching sends the operator the events of a watch.
type watching struct {
	http.ResponseWriter
	context         context.Context //nolint:containedctx // that of the request
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
	ends := false
	if counts := object != nil && change != "BOOKMARK" && change != "ERROR"; counts && versionOf(object) > w.first {
		name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		var err error
		if ends, err = w.boundary.deliver(w, change, name); err != nil {
			return err
		}
	}
	if _, err := w.ResponseWriter.Write(frame); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	if ends {
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

// deliver counts an event, and waits until the operator may see it. ends reports that it is the last
// one of its watch.
func (b *boundary) deliver(w *watching, change, name string) (ends bool, err error) {
	text, number, behind, ends, err := b.event(w, change, name)
	if err != nil {
		return false, err
	}
	if behind != nil && b.wait(w, number, behind) != nil {
		return false, w.context.Err()
	}
	b.trace.add("operator", "event", text)
	return ends, nil
}

// event counts an event, and lets faults begin at it.
func (b *boundary) event(w *watching, change, name string) (text string, number int, behind *lag, ends bool, err error) {
	changes := b.changes(w.kind)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return "", 0, nil, false, errClosed
	}
	b.events[w.kind]++
	number = b.events[w.kind]
	b.places, b.repeated = append(b.places, fault.Place{Point: fault.AtEvent, At: number, Of: w.kind}), append(b.repeated, false)
	b.names = append(b.names, "event "+change+" "+w.kind)
	for i, f := range b.plan.Faults {
		if f.Kind.Point() != fault.AtEvent || f.At != number || f.Of != w.kind {
			continue
		}
		b.fired[i] = true
		b.trace.add("sim", "fault", f.String())
		switch f.Kind {
		case fault.DelayWatch:
			b.lags[w.kind] = &lag{by: f.By, until: time.Now().Add(delayWatchTime), event: number, changes: changes}
		case fault.ExpireWatch:
			b.expired[w.selection], ends = true, true
		case fault.CloseWatch:
			ends = true
		}
	}
	return fmt.Sprintf("%d of %s: %s %s", number, w.kind, strings.ToLower(change), name), number, b.lags[w.kind], ends, nil
}

// wait waits until a watch that lags may send an event: there are as many changes after it as the
// watch is behind, or the time is over.
func (b *boundary) wait(w *watching, number int, behind *lag) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	waited := false
	for time.Now().Before(behind.until) && b.changes(w.kind)-behind.changes < number-behind.event+behind.by {
		waited = true
		select {
		case <-w.context.Done():
			return w.context.Err()
		case <-ticker.C:
		}
	}
	if waited {
		b.awake()
	}
	return nil
}

// lagging reports whether a watch may be behind.
func (b *boundary) lagging() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
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
