// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ctrlkit/ctrlkit/journal"
)

// stalled are the objects that are Stalled, for the series of their controllers.
type stalled struct {
	count, oldest *prometheus.Desc

	mu    sync.Mutex // for since
	since map[string]map[objectKey]time.Time
}

var _ prometheus.Collector = (*stalled)(nil)

func newStalled() *stalled {
	labels := []string{"controller"}
	return &stalled{
		count: prometheus.NewDesc("ctrlkit_stalled_objects", "Objects that are Stalled: a person has to act.", labels, nil),
		oldest: prometheus.NewDesc("ctrlkit_stalled_oldest_timestamp_seconds",
			"Since when the object is Stalled that has been for longest. Absent while none is.", labels, nil),
		since: make(map[string]map[objectKey]time.Time),
	}
}

// finished records whether an object is Stalled after a reconcile. One that has ended before its
// steps says nothing about it; one that is paused is in the hands of a person.
func (s *stalled) finished(key objectKey, e journal.Finished) {
	if e.Result == journal.ResultConverged || untried(e) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Stalled.IsZero() || e.Result == journal.ResultPaused || e.Result == journal.ResultDeleted {
		if objects, ok := s.since[key.controller]; ok { // it had one, and now has a zero
			delete(objects, key)
		}
		return
	}
	if s.since[key.controller] == nil {
		s.since[key.controller] = make(map[objectKey]time.Time)
	}
	s.since[key.controller][key] = e.Stalled
}

// Describe is called when the series are registered.
func (s *stalled) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- s.count
	descriptions <- s.oldest
}

// Collect is called when the registry is read. It holds no lock while it sends.
func (s *stalled) Collect(metrics chan<- prometheus.Metric) {
	var all []prometheus.Metric
	s.mu.Lock()
	for controller, objects := range s.since {
		all = append(all, gauge(s.count, float64(len(objects)), controller))
		var oldest time.Time
		for _, since := range objects {
			if oldest.IsZero() || since.Before(oldest) {
				oldest = since
			}
		}
		if !oldest.IsZero() {
			all = append(all, gauge(s.oldest, float64(oldest.Unix()), controller))
		}
	}
	s.mu.Unlock()
	for _, m := range all {
		metrics <- m
	}
}
