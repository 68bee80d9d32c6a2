// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Config returns a configuration whose clients call the server without a network. As with a real
// server, clients choose between JSON and protobuf: those of controller-runtime use protobuf for
// built-in kinds.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://apiserver.sim.invalid", Transport: s, QPS: -1}
}

// RoundTrip answers a request, and then does all background work that the request has caused. The
// body of the answer to a watch streams its events. It ends after the timeoutSeconds that the request
// asks for, by the time of package time.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := ParseRequest(r)
	if err != nil {
		return nil, err
	}
	return s.roundTrip(r, request), nil
}

func (s *Server) roundTrip(r *http.Request, request *Request) *http.Response {
	request.Actor = request.manager()
	if request.Verb != "watch" {
		response := s.Serve(request)
		for s.Work() { //nolint:revive // each call does one piece of work
		}
		return response.HTTP(r)
	}
	watch, refused := s.Watch(request)
	if refused != nil {
		return refused.HTTP(r)
	}
	framing := request.Framing()
	response := (&Response{Code: http.StatusOK, Header: http.Header{"Content-Type": {framing.ContentType()}}}).HTTP(r)
	response.Body, response.ContentLength = newStream(r.Context(), watch, framing), -1
	return response
}

// stream is the body of a watch.
type stream struct {
	ctx     context.Context
	watch   *Watch
	framing Framing
	over    <-chan time.Time // fires when the time limit of the watch is over; nil if there is none
	more    chan struct{}
	closed  chan struct{}
	once    sync.Once
	rest    []byte
	ended   bool
}

func newStream(ctx context.Context, w *Watch, framing Framing) *stream {
	s := &stream{ctx: ctx, watch: w, framing: framing, more: make(chan struct{}, 1), closed: make(chan struct{})}
	if w.timeout > 0 {
		s.over = time.After(w.timeout)
	}
	w.OnPending(func() {
		select {
		case s.more <- struct{}{}:
		default:
		}
	})
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	for {
		if len(s.rest) > 0 {
			n := copy(p, s.rest)
			s.rest = s.rest[n:]
			return n, nil
		}
		if s.ended {
			return 0, io.EOF
		}
		if e, ok := s.watch.Next(); ok {
			s.rest, s.ended = s.framing.Frame(e), e.Type == "ERROR"
			continue
		}
		if s.watch.Ended() {
			s.ended = true
			continue
		}
		select {
		case <-s.more:
		case <-s.over:
			s.ended = true
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		case <-s.closed:
			return 0, io.ErrClosedPipe
		}
	}
}

// Close ends the watch.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	s.watch.Stop()
	return nil
}
