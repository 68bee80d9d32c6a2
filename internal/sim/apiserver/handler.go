// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"maps"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Handler returns a handler that serves the API over HTTP, for clients in other processes, kubectl
// among them. It does the background work that each request has caused, as [Server.RoundTrip] does.
//
// turn is locked while a request is answered, so that its holder knows of every change and can make
// several of its own without another one in between. A watch is opened under turn and sends its events
// without it. If turn is nil, requests are answered as they come.
func (s *Server) Handler(turn sync.Locker) http.Handler {
	if turn == nil {
		turn = &sync.Mutex{}
	}
	return Reading(func(w http.ResponseWriter, r *http.Request, request *Request) { s.ServeRequest(w, r, request, turn) })
}

// Reading returns a handler that reads requests, which next answers. The whole body is read first: a
// client that is slow must not keep others from their turns.
func Reading(next func(http.ResponseWriter, *http.Request, *Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := ParseRequest(r)
		if err != nil {
			fail(apierrors.NewBadRequest(err.Error())).response().Send(w, r)
			return
		}
		request.remote = true
		next(w, r, request)
	})
}

// ServeRequest answers a request that [Reading] has read, as the handler of [Server.Handler] does.
func (s *Server) ServeRequest(w http.ResponseWriter, r *http.Request, request *Request, turn sync.Locker) {
	answer := func() *http.Response {
		turn.Lock()
		defer turn.Unlock()
		return s.roundTrip(r, request)
	}
	write(w, r, answer())
}

// Send sends the response to a request.
func (r *Response) Send(w http.ResponseWriter, request *http.Request) {
	write(w, request, r.HTTP(request))
}

// write sends an answer. What a watch sends is flushed event by event.
func write(w http.ResponseWriter, r *http.Request, response *http.Response) {
	defer response.Body.Close() //nolint:errcheck // it closes no file
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	if response.ContentLength >= 0 {
		if r.Method != http.MethodHead {
			_, _ = io.Copy(w, response.Body) //nolint:errcheck // the client is gone
		}
		return
	}
	control := http.NewResponseController(w)
	buffer := make([]byte, 64<<10)
	for control.Flush() == nil {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			if _, failed := w.Write(buffer[:n]); failed != nil {
				return // the client is gone
			}
		}
		if err != nil {
			_ = control.Flush() //nolint:errcheck // as above
			return
		}
	}
}
