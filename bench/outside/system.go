// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Resource is what the system keeps.
type Resource struct {
	Owner    string `json:"owner"`
	Size     string `json:"size"`
	Password string `json:"password,omitempty"`
}

// Calls are how often the system was called.
type Calls struct{ Creates, Observations, Updates, Deletes int }

// Total returns the sum of all calls.
func (c Calls) Total() int { return c.Creates + c.Observations + c.Updates + c.Deletes }

// Sub returns the calls between two times.
func (c Calls) Sub(before Calls) Calls {
	return Calls{c.Creates - before.Creates, c.Observations - before.Observations, c.Updates - before.Updates, c.Deletes - before.Deletes}
}

// A System is an external system in memory, which is served on a port of this machine.
type System struct {
	server  *http.Server
	url     string
	latency time.Duration
	ended   chan error

	mu      sync.Mutex // for all below
	all     map[string]Resource
	calls   Calls
	polls   []time.Time
	created map[string]int
}

// Start starts a system whose calls take a time. Close ends it.
func Start(latency time.Duration) (*System, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the external system: %w", err)
	}
	s := &System{
		url: "http://" + listener.Addr().String(), latency: latency, ended: make(chan error, 1),
		all: make(map[string]Resource), created: make(map[string]int),
	}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

// URL returns the address of the system, without a slash at the end.
func (s *System) URL() string { return s.url }

// Close ends the system.
func (s *System) Close() error {
	err := s.server.Close()
	if served := <-s.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// serve answers a call, after its time.
func (s *System) serve(w http.ResponseWriter, r *http.Request) {
	var wanted Resource
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	timer := time.NewTimer(s.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return
	}
	status, resource := s.do(r.Method, strings.TrimPrefix(r.URL.Path, "/"), wanted)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(resource) // who called may have ended
}

// do does a call, and returns the status of its answer and the resource after it.
func (s *System) do(method, name string, wanted Resource) (int, Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource, exists := s.all[name]
	switch method {
	case http.MethodPost:
		if s.calls.Creates++; exists {
			return http.StatusConflict, resource
		}
		s.created[name]++
		wanted.Password = fmt.Sprintf("password-%d", len(s.created))
		s.all[name] = wanted
		return http.StatusOK, wanted
	case http.MethodPut:
		s.calls.Updates++
		if exists {
			wanted.Password = resource.Password
			s.all[name], resource = wanted, wanted
		}
	case http.MethodDelete:
		s.calls.Deletes++
		delete(s.all, name)
	case http.MethodGet:
		if s.calls.Observations++; exists {
			s.polls = append(s.polls, time.Now())
		}
	default:
		return http.StatusMethodNotAllowed, Resource{}
	}
	if !exists {
		return http.StatusNotFound, Resource{}
	}
	return http.StatusOK, resource
}

// Calls returns the calls since the beginning.
func (s *System) Calls() Calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Polls returns when resources that exist were observed.
func (s *System) Polls() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.polls...)
}

// Sizes returns how many resources there are of each size.
func (s *System) Sizes() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sizes := make(map[string]int)
	for _, resource := range s.all {
		sizes[resource.Size]++
	}
	return sizes
}

// Twice returns how many resources were created more than once.
func (s *System) Twice() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, times := range s.created {
		if times > 1 {
			n++
		}
	}
	return n
}
