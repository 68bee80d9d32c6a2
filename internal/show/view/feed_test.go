// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A screen is a viewer in a bubble: what a stream has sent it, until it leaves.
type screen struct {
	header   http.Header
	code     int
	deadline time.Time
	got      bytes.Buffer
	reads    chan struct{} // closed unless the viewer does not read
	leave    context.CancelFunc
	left     chan struct{}
}

func (s *screen) Header() http.Header { return s.header }

func (s *screen) WriteHeader(code int) { s.code = code }

func (s *screen) Flush() {}

func (s *screen) SetWriteDeadline(at time.Time) error { s.deadline = at; return nil }

func (s *screen) Write(text []byte) (int, error) {
	var late <-chan time.Time // never
	if !s.deadline.IsZero() {
		late = time.After(time.Until(s.deadline))
	}
	select {
	case <-s.reads:
		return s.got.Write(text)
	case <-late:
		return 0, os.ErrDeadlineExceeded
	}
}

// reads is the state of viewers that read.
var reads = func() chan struct{} { c := make(chan struct{}); close(c); return c }

// open begins to show an address.
func (w *world) open(address string, reads chan struct{}) *screen {
	ctx, cancel := context.WithCancel(w.t.Context())
	s := &screen{header: http.Header{}, code: http.StatusOK, reads: reads, leave: cancel, left: make(chan struct{})}
	go func() {
		defer close(s.left)
		w.server.ServeHTTP(s, httptest.NewRequestWithContext(ctx, http.MethodGet, Path+address, nil))
	}()
	return s
}

// counted adds a page that counts how often it is rendered, until the test ends.
func counted(t *testing.T) *atomic.Int32 {
	n := new(atomic.Int32)
	pages["counted"] = page{title: "Counted", every: time.Minute, content: func(v *viewing) block { n.Add(1); return v.objects() }}
	t.Cleanup(func() { delete(pages, "counted") })
	return n
}

// A page is rendered once for all who look at the same address, at first and after each change.
func TestViewersShareRenderings(t *testing.T) {
	n := counted(t)
	synctest.Test(t, func(t *testing.T) {
		w := troubled(t)
		w.server.options.Pace = 250 * time.Millisecond
		var all []*screen
		for range mostStreams - 1 {
			all = append(all, w.open("counted?stream=1&q=db", reads()))
		}
		other := w.open("counted?stream=1&q=odd", reads())
		synctest.Wait()
		if n.Load() != 2 {
			t.Errorf("%d renderings for two addresses", n.Load())
		}
		w.put("db-3", "", "")
		w.put("db-4", "", "")
		time.Sleep(time.Second)
		synctest.Wait()
		if n.Load() != 4 {
			t.Errorf("%d renderings for two addresses, and for a change of each", n.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n.Load() != 6 {
			t.Errorf("%d renderings when also a minute has passed", n.Load())
		}
		for _, s := range all {
			if got := s.got.String(); got != all[0].got.String() || !strings.Contains(got, "db-3") {
				t.Fatalf("a viewer got:\n%s", got)
			}
		}
		if strings.Contains(other.got.String(), "db-3") {
			t.Error("a viewer has got the page of another address")
		}
		for _, s := range append(all, other) {
			s.leave()
			<-s.left
		}
		if len(w.server.feeds) != 0 || w.server.streams != 0 {
			t.Errorf("%d feeds and %d streams without a viewer", len(w.server.feeds), w.server.streams)
		}
		time.Sleep(2 * linger) // the table ends
	})
}

// A viewer above the limit gets an answer that says when to ask again, and can load the page; when
// another one has left, it is admitted. One that does not read keeps its place for two minutes.
func TestStreamsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := troubled(t)
		var all []*screen
		for i := range mostStreams {
			read := reads()
			if i == 0 {
				read = make(chan struct{})
			}
			all = append(all, w.open(fmt.Sprint("objects?stream=1&q=", i), read))
		}
		synctest.Wait()
		refused := w.open("objects?stream=1", reads())
		<-refused.left
		if got := refused.got.String(); refused.code != http.StatusServiceUnavailable || refused.header.Get("Retry-After") != "10" || !strings.Contains(got, "reload it") {
			t.Errorf("one too many gets %d %v %s", refused.code, refused.header, got)
		}
		if page := w.get("objects"); !strings.Contains(page, "14 in all") && !strings.Contains(page, "12 waiting") {
			t.Errorf("the page beside the streams:\n%s", page)
		}
		all[1].leave()
		<-all[1].left
		next := w.open("objects?stream=1", reads())
		synctest.Wait()
		if !strings.Contains(next.got.String(), "event: patch") {
			t.Errorf("after one has left: %d %s", next.code, next.got.String())
		}
		time.Sleep(mostStream)
		<-all[0].left // although it has not read
		synctest.Wait()
		if w.server.streams != 0 {
			t.Errorf("%d streams after %s", w.server.streams, mostStream)
		}
		time.Sleep(2 * linger) // the table ends
	})
}

// A viewer that reads slowly is sent what leads from what it has to what there is, without the
// pages between.
func TestSlowViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := troubled(t)
		fast, slow := w.open("objects?stream=1", reads()), w.open("objects?stream=1", make(chan struct{}))
		for i := range 5 {
			synctest.Wait()
			w.put(fmt.Sprint("new-", i), "", "")
			time.Sleep(time.Second)
		}
		close(slow.reads)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := strings.Count(slow.got.String(), "event: patch"); n != 2 {
			t.Errorf("%d patches, want the first page and what it missed", n)
		}
		if got, want := shownBy(t, slow), shownBy(t, fast); got != want || !strings.Contains(got, "6 ready") {
			t.Errorf("the slow viewer has:\n%s\nand the fast one:\n%s", got, want)
		}
		for _, s := range []*screen{fast, slow} {
			s.leave()
			<-s.left
		}
		time.Sleep(2 * linger) // the table ends
	})
}

// shownBy applies what a viewer was sent.
func shownBy(t *testing.T, s *screen) string {
	c := newViewer(t, &s.got)
	for c.next() {
	}
	return c.page("content")
}
