// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ctrlkit/ctrlkit/journal"
)

// Options say which series are kept. The zero value is right for every operator.
type Options struct {
	// PerObject says whether each object has series of its own.
	PerObject PerObject
}

// PerObject says whether each object has series of its own.
type PerObject int

const (
	// PerObjectNone: no object has series of its own. The number of series depends on the code of
	// the operator, not on the cluster.
	PerObjectNone PerObject = iota

	// PerObjectEach: each object has two series of its own, from its first reconcile until a
	// reconcile finds it gone. Their number is bounded only by that of the objects: use it for some
	// thousand at most. An operator that filters out the deletions of its objects never finds them
	// gone.
	PerObjectEach
)

// Metrics is a [journal.Observer] that keeps Prometheus series. [New] returns one. It is safe for
// concurrent use.
type Metrics struct {
	series  *series
	stalled *stalled
	objects *objects // nil for PerObjectNone
}

var _ journal.Observer = (*Metrics)(nil)

// New returns an observer whose series are collected through registerer. What an earlier call has
// registered there is reused, so that any number of engines share the series, with one observer or
// with one each. The error says that the registry has other series of these names.
func New(registerer prometheus.Registerer, options Options) (*Metrics, error) {
	if registerer == nil {
		return nil, errors.New("metrics: no registerer: use Registry of sigs.k8s.io/controller-runtime/pkg/metrics")
	}
	s, err := register(registerer, newSeries())
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	m := &Metrics{series: s}
	if m.stalled, err = register(registerer, newStalled()); err != nil {
		return nil, fmt.Errorf("registering metrics of stalled objects: %w", err)
	}
	if options.PerObject == PerObjectEach {
		if m.objects, err = register(registerer, newObjects()); err != nil {
			return nil, fmt.Errorf("registering metrics of objects: %w", err)
		}
	}
	return m, nil
}

// register registers c and returns it, or the collector that has registered the same series
// already.
func register[C prometheus.Collector](registerer prometheus.Registerer, c C) (C, error) {
	err := registerer.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ours := already.ExistingCollector.(C); ours {
			return existing, nil
		}
	}
	return c, err
}

// Observe counts the event.
func (m *Metrics) Observe(_ context.Context, entry journal.Entry) {
	s, controller := m.series, entry.Controller
	switch e := entry.Event.(type) {
	case journal.Started:
		s.started(controller, e)
	case journal.StepEnded:
		s.stepEnded(controller, e)
	case journal.ActionEnded:
		s.actionEnded(controller, e)
	case journal.Wrote:
		s.wrote(controller, e)
	case journal.HotLoop:
		s.hotLoops.WithLabelValues(controller).Inc()
	case journal.Finished:
		s.finished(controller, e)
		key := objectKey{controller, entry.Object.Namespace, entry.Object.Name}
		m.stalled.finished(key, e)
		if m.objects != nil {
			m.objects.finished(key, e)
		}
	}
}
