// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

// transport is the connection of one process to the API server: it parks each request until the driver takes it.
type transport struct{ process *Process }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := apiserver.ParseRequest(r)
	if err != nil {
		return nil, err
	}
	request.Actor = t.process.name
	w := t.process.world
	event := request.Resource.Resource == "events" && request.Verb != "watch"
	if (request.Verb == "" || event) && !w.isDead(t.process) {
		// Discovery and Events are answered at once: REST mappers and event recorders ask while they hold a lock, and who waits for a lock
		// does not count as being quiet.
		if event {
			w.noteEvent(request)
		}
		return w.server.Serve(request).HTTP(r), nil
	}
	a := t.process.world.park(&parked{process: t.process, ctx: r.Context(), kind: parkedRequest, request: request, key: orderKey(request)})
	if a.panics {
		panicIfReconciling()
		return nil, errCrashed
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.http(r), nil
}

// panicIfReconciling panics in the goroutine of a reconcile, where controller-runtime recovers. Anywhere else it would end the process, which
// is what crashes are for.
func panicIfReconciling() {
	if stack := debug.Stack(); bytes.Contains(stack, []byte("reconcileHandler")) {
		panic(injectedPanic)
	}
}

// orderKey orders requests that wait at the same time. Time limits of watches are random in client-go, and are left out.
func orderKey(r *apiserver.Request) string {
	query := r.Query
	if query.Has("timeoutSeconds") || query.Has("timeout") {
		query = make(map[string][]string, len(r.Query))
		for k, v := range r.Query {
			if k != "timeoutSeconds" && k != "timeout" {
				query[k] = v
			}
		}
	}
	return r.Method + " " + r.Path + "?" + query.Encode() + " " + string(r.Body)
}

// http makes the answer one of net/http.
func (a answer) http(r *http.Request) *http.Response {
	response := &http.Response{
		StatusCode: a.response.Code, Status: http.StatusText(a.response.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.response.Header, Request: r, ContentLength: int64(len(a.response.Body)), Body: io.NopCloser(bytes.NewReader(a.response.Body)),
	}
	if response.Header == nil {
		response.Header = http.Header{}
	}
	if a.body != nil {
		response.Body, response.ContentLength = a.body, -1
	}
	return response
}

// watchBody is the body of the answer to a watch. The driver pushes what comes, the client reads.
type watchBody struct {
	ctx context.Context

	mu     sync.Mutex
	data   []byte
	ended  error         // why there will be no more data
	closed bool          // the client has closed it
	more   chan struct{} // has an element when data or ended may have changed
}

func newWatchBody(ctx context.Context) *watchBody {
	return &watchBody{ctx: ctx, more: make(chan struct{}, 1)}
}

func (b *watchBody) push(frame []byte) {
	b.mu.Lock()
	b.data = append(b.data, frame...)
	b.mu.Unlock()
	b.signal()
}

// end lets the client read what was pushed, and then err.
func (b *watchBody) end(err error) {
	b.mu.Lock()
	if b.ended == nil {
		b.ended = err
	}
	b.mu.Unlock()
	b.signal()
}

func (b *watchBody) signal() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

func (b *watchBody) Read(p []byte) (int, error) {
	for {
		b.mu.Lock()
		n := copy(p, b.data)
		b.data = b.data[n:]
		ended := b.ended
		b.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if ended != nil {
			return 0, ended
		}
		select {
		case <-b.more:
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
}

func (b *watchBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end(io.ErrClosedPipe)
	return nil
}

// gone reports whether nobody reads any more.
func (b *watchBody) gone() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed || b.ended != nil || b.ctx.Err() != nil
}

// httpExternal is a fake external system that is an http.Handler.
type httpExternal struct {
	process *Process
	system  string
	handler http.Handler
	owner   func(*http.Request) types.UID
}

func (h httpExternal) RoundTrip(r *http.Request) (*http.Response, error) {
	call := Call{System: h.system, Verb: r.Method, What: r.URL.RequestURI()}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		call.Mutates = true
		if h.owner != nil {
			call.Owner = h.owner(r)
		}
	}
	recorder := httptest.NewRecorder()
	err := h.process.Call(r.Context(), call, func() error {
		h.handler.ServeHTTP(recorder, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	response := recorder.Result()
	response.Request = r
	return response, nil
}
