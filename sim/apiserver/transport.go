// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Config returns a configuration whose clients call the server without a network.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: "http://apiserver.sim.invalid", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
}

// RoundTrip answers a request, and then does all background work that the request has caused. The
// body of the answer to a watch streams its events.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := ParseRequest(r)
	if err != nil {
		return nil, err
	}
	request.Actor = request.manager()
	if request.Verb != "watch" {
		response := s.Serve(request)
		for s.Work() { //nolint:revive // each call does one piece of work
		}
		return response.HTTP(r), nil
	}
	watch, refused := s.Watch(request)
	if refused != nil {
		return refused.HTTP(r), nil
	}
	response := (&Response{Code: http.StatusOK, Header: jsonHeader()}).HTTP(r)
	response.Body, response.ContentLength = newStream(r.Context(), watch), -1
	return response, nil
}

// stream is the body of a watch.
type stream struct {
	ctx    context.Context
	watch  *Watch
	more   chan struct{}
	closed chan struct{}
	once   sync.Once
	rest   []byte
	ended  bool
}

func newStream(ctx context.Context, w *Watch) *stream {
	s := &stream{ctx: ctx, watch: w, more: make(chan struct{}, 1), closed: make(chan struct{})}
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
			s.rest, s.ended = e.Frame(), e.Type == "ERROR"
			continue
		}
		select {
		case <-s.more:
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
