// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
)

// transport is the connection of one process to the API server: each request waits there for its
// turn.
type transport struct{ process *Process }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := apiserver.ParseRequest(r)
	if err != nil {
		return nil, err
	}
	p := t.process
	request.Actor = p.owner.Name
	if request.User == nil {
		p.run.needs.Sent(request)
		request.User = p.run.account
	}
	event := request.Resource.Resource == "events" && request.Verb != "watch"
	if (request.Verb == "" || event) && !p.run.schedule.Dropped(p.owner) {
		// Discovery and Events are answered at once: REST mappers and event recorders ask while
		// they hold a lock, and a goroutine that waits for a lock does not count as waiting for its
		// turn.
		if event {
			p.run.judge.Event(request)
		}
		return p.run.cluster.Server.Serve(request).HTTP(r), nil
	}
	var body *watchBody
	if request.Verb == "watch" {
		body = newWatchBody(r.Context())
	}
	p.run.writes.Sent(request)
	answer, err := p.run.gateway.request(r.Context(), p, request, body)
	switch {
	case err != nil:
		return nil, err
	case answer.Panics:
		panicIfReconciling()
		return nil, inject.ErrCrashed
	case answer.Err != nil:
		return nil, answer.Err
	}
	p.reads.passed(r.Context(), request, answer.Response.Code)
	response := answer.Response.HTTP(r)
	if body != nil && answer.Response.Code == http.StatusOK {
		response.Body, response.ContentLength = body, -1
	}
	return response, nil
}

// panicIfReconciling panics in the goroutine of a reconcile, where controller-runtime recovers.
// Anywhere else it would end the process, which is what crashes are for.
func panicIfReconciling() {
	if stack := debug.Stack(); bytes.Contains(stack, []byte("reconcileHandler")) {
		panic(judge.InjectedPanic)
	}
}

// orderKey orders requests that wait at the same time. Time limits of watches are random in
// client-go, and are left out.
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

// watchBody is the body of the answer to a watch. The driver pushes what comes, the client reads.
// It ends with io.EOF, whatever the reason: client-go makes an event of any other error, and
// informers that keep only the metadata of objects then wait for a reader of it, for ever.
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

// endOfProcess returns io.EOF when the client has noticed that its context has ended. If it noticed
// both at once, chance would decide which of the two ends its watch, and how many random numbers it
// draws.
func endOfProcess() error {
	time.Sleep(time.Millisecond) // virtual time
	return io.EOF
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
		if errors.Is(ended, inject.ErrCrashed) {
			return 0, endOfProcess()
		}
		if ended != nil {
			return 0, ended
		}
		select {
		case <-b.more:
		case <-b.ctx.Done():
			return 0, endOfProcess()
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

// gone reports whether the client has stopped reading.
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
	received := asReceived(r)
	call := Call{System: h.system, Verb: r.Method, What: r.URL.RequestURI()}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		call.Mutates = true
		if h.owner != nil {
			call.Owner = h.owner(received)
		}
	}
	recorder := httptest.NewRecorder()
	err := h.process.Call(r.Context(), call, func() error {
		h.handler.ServeHTTP(recorder, received)
		return nil
	})
	if err != nil {
		return nil, err
	}
	response := recorder.Result()
	response.Request = r
	return response, nil
}

// asReceived returns a request of a client as net/http gives it to a handler: it always has a body,
// the host that it is for, and its target.
func asReceived(r *http.Request) *http.Request {
	received := *r
	received.RequestURI = r.URL.RequestURI()
	if r.Body == nil {
		received.Body = io.NopCloser(strings.NewReader(""))
	}
	if r.Host == "" {
		received.Host = r.URL.Host
	}
	return &received
}
