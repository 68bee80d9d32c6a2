// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Limits of what viewers cost: 100 of them hold a page each at most, and one rendering serves all
// who look at the same address.
const (
	// mostStreams is how many viewers a server has at the same time. Others get 503, and reload.
	mostStreams = 100
	// mostStream is how long a stream lasts: then the viewer asks again, with a token that may have
	// been revoked. A viewer that does not read ends then, too.
	mostStream = 2 * time.Minute
	// mostRendering is how long a rendering waits for an API server.
	mostRendering = 10 * time.Second
)

// A feed renders the page of an address for all its viewers. What it renders depends on the address
// alone: who may see a path is decided before a request comes here.
type feed struct {
	viewers int // guarded by the server

	mu     sync.Mutex
	latest *edition
}

// An edition is a page as it was at a time.
type edition struct {
	root    block
	shown   shown
	version string
	changed <-chan struct{} // closed when there may be another one
	at      time.Time
	rest    time.Time // until then no other one is made

	mu     sync.Mutex
	events map[string][]byte // by the version that a viewer has
}

// join returns the feed of an address, and what to call when the viewer leaves.
func (s *Server) join(name string, query url.Values) (*feed, func()) {
	q := maps.Clone(query)
	q.Del("stream")
	q.Del("version")
	key := name + "?" + q.Encode()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[key]
	if f == nil {
		f = &feed{}
		s.feeds[key] = f
	}
	f.viewers++
	return f, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.viewers--; f.viewers == 0 {
			delete(s.feeds, key)
		}
	}
}

// admit counts a stream, and reports false if there are too many.
func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == mostStreams {
		return false
	}
	s.streams++
	return true
}

func (s *Server) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

// edition returns the page as it is, which it renders if no viewer has lately.
func (f *feed) edition(v *viewing) *edition {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := time.Now()
	if e := f.latest; e != nil && (began.Before(e.rest) || !e.isStale(began, v.page.every)) {
		return e
	}
	e := &edition{changed: v.table.next(), at: began, events: map[string][]byte{}}
	for _, kind := range v.server.options.Objects.Kinds() {
		v.table.follow(v.server.options.Objects, kind)
	}
	shared := *v // it is not only for the viewer that came first, who may leave
	var cancel context.CancelFunc
	shared.ctx, cancel = context.WithTimeout(context.WithoutCancel(v.ctx), mostRendering)
	defer cancel()
	shared.now = began
	e.root = v.page.content(&shared)
	e.shown = showing(e.root)
	e.version = e.shown.version()
	// A page that is expensive to make is made less often.
	e.rest = time.Now().Add(max(v.server.options.Pace, 10*time.Since(began)))
	f.latest = e
	return e
}

// isStale reports whether the page may be another one now.
func (e *edition) isStale(now time.Time, every time.Duration) bool {
	select {
	case <-e.changed:
		return true
	default:
		return !now.Before(e.at.Add(every))
	}
}

// event returns what leads to the edition from another one, which is nil at first. It is empty if
// that is nothing, and made once for all who have the same.
func (e *edition) event(has *edition) []byte {
	before, version := shown{}, ""
	if has != nil {
		before, version = has.shown, has.version
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	text, made := e.events[version]
	if !made {
		if p := patchOf(before, &e.root, e.shown); p != nil {
			text = p.event()
		}
		e.events[version] = text
	}
	return text
}

// stream sends what changes.
func (s *Server) stream(w http.ResponseWriter, v *viewing, f *feed, version string) {
	if !s.admit() {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many viewers follow this page: reload it for what is new", http.StatusServiceUnavailable)
		return
	}
	defer s.dismiss()
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(mostStream)) // a server that can't do it has its own
	end := time.NewTimer(mostStream)
	defer end.Stop()
	var has *edition
	for {
		e := f.edition(v)
		text := []byte(": nothing has changed\n\n")
		if has != nil || e.version != version {
			text = e.event(has)
		}
		has = e
		if _, err := w.Write(text); err != nil || control.Flush() != nil {
			return
		}
		if !s.wait(v.ctx, end.C, nil, e.rest) || !s.wait(v.ctx, end.C, e.changed, e.at.Add(v.page.every)) {
			return
		}
	}
}

// wait waits for a time or a change. It reports false if the stream has ended meanwhile.
func (s *Server) wait(ctx context.Context, end <-chan time.Time, changed <-chan struct{}, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
		return true
	case <-end:
	case <-ctx.Done():
	case <-s.options.Done:
	}
	return false
}
