// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/step"
)

// A system is an external system, in memory, that takes a time for each call.
type system struct {
	latency time.Duration

	mu      sync.Mutex // for all below
	all     map[string]string
	calls   int
	polls   []time.Time            // observations of what exists
	created map[string][]time.Time // when each was created; more than once is a mistake
}

func newSystem(latency time.Duration) *system {
	return &system{latency: latency, all: make(map[string]string), created: make(map[string][]time.Time)}
}

// call takes the time of a call, then does it.
func (s *system) call(ctx context.Context, do func()) error {
	timer := time.NewTimer(s.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	do()
	return nil
}

// Connect implements [external.Connector].
func (s *system) Connect(context.Context, *step.Request[*widget.Widget]) (external.Client[*widget.Widget], error) {
	return s, nil
}

// Observe implements [external.Client].
func (s *system) Observe(ctx context.Context, _ *widget.Widget, id string) (external.Observation, error) {
	seen := external.Observation{State: external.Absent}
	err := s.call(ctx, func() {
		if owner, ok := s.all[id]; ok {
			seen = external.Observation{State: external.UpToDate, Owner: owner}
			s.polls = append(s.polls, time.Now())
		}
	})
	return seen, err
}

// Create implements [external.Client].
func (s *system) Create(ctx context.Context, obj *widget.Widget, creation external.Creation) (string, error) {
	return creation.Name, s.call(ctx, func() {
		s.all[creation.Name] = external.OwnerOf(obj)
		s.created[creation.Name] = append(s.created[creation.Name], time.Now())
	})
}

// Update implements [external.Client].
func (s *system) Update(ctx context.Context, _ *widget.Widget, _ string) error {
	return s.call(ctx, func() {})
}

// Delete implements [external.Client].
func (s *system) Delete(ctx context.Context, _ *widget.Widget, id string) error {
	return s.call(ctx, func() { delete(s.all, id) })
}

// counts returns how many calls there were, and how often resources that exist were observed.
func (s *system) counts() (calls int, polls []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, append([]time.Time(nil), s.polls...)
}

// duplicates returns how many resources were created more than once.
func (s *system) duplicates() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, times := range s.created {
		if len(times) > 1 {
			n++
		}
	}
	return n
}
