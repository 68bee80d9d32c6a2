// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ctrlkit/ctrlkit/journal"
)

// objects are the series of single objects. They are made anew each time the registry is read, so
// that no reader sees an object with two results, or with none.
type objects struct {
	result, failures *prometheus.Desc

	mu     sync.Mutex // for latest
	latest map[objectKey]objectState
}

var _ prometheus.Collector = (*objects)(nil)

type objectKey struct{ controller, namespace, name string }

type objectState struct {
	result   journal.Result
	failures int // in a row
}

func newObjects() *objects {
	labels := []string{"controller", "namespace", "name"}
	return &objects{
		result: prometheus.NewDesc("ctrlkit_object_result", "1 for the result of the last reconcile of the object.",
			append(labels[:len(labels):len(labels)], "result"), nil),
		failures: prometheus.NewDesc("ctrlkit_object_failures", "Reconciles of the object that failed in a row.", labels, nil),
		latest:   make(map[objectKey]objectState),
	}
}

// finished records how a reconcile of an object ended, and drops an object that is gone.
func (o *objects) finished(key objectKey, e journal.Finished) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Result == journal.ResultGone {
		delete(o.latest, key)
		return
	}
	state := o.latest[key]
	state.result = e.Result
	switch {
	case e.Outcome.Err != nil:
		state.failures++
	case !untried(e):
		state.failures = 0
	}
	o.latest[key] = state
}

// untried reports whether a reconcile ended before anything was tried: because the cache was stale,
// or because the object is slowed down. What failed before may then still fail.
func untried(e journal.Finished) bool {
	slowed := e.Result == journal.ResultWaiting && len(e.Outcome.Waits) == 0 && e.Outcome.RequeueAfter == 0
	return e.Result == journal.ResultStale || slowed
}

// Describe is called when the series are registered.
func (o *objects) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- o.result
	descriptions <- o.failures
}

// Collect is called when the registry is read. It holds no lock while it sends.
func (o *objects) Collect(metrics chan<- prometheus.Metric) {
	o.mu.Lock()
	latest := maps.Clone(o.latest)
	o.mu.Unlock()
	for key, state := range latest {
		metrics <- gauge(o.result, 1, key.controller, key.namespace, key.name, string(state.result))
		metrics <- gauge(o.failures, float64(state.failures), key.controller, key.namespace, key.name)
	}
}

// gauge returns a gauge with this value. An invalid label, which no object of a cluster has, makes
// reading the registry fail instead of the operator.
func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}
