// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ctrlkit/ctrlkit/journal"
)

// buckets reach, in seconds, from a read from the cache to a slow call of an external service. They
// are few, because each action has them all.
var buckets = []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 60}

// series are the series of controllers. They are one collector, so that they are registered
// together or not at all, and share their names.
type series struct {
	reconciles, causes, failures, writes, hotLoops *prometheus.CounterVec
	steps, actions                                 *prometheus.CounterVec
	stepDuration, actionDuration                   *prometheus.HistogramVec

	names *names
}

var _ prometheus.Collector = (*series)(nil)

func newSeries() *series {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"controller"}, labels...))
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, append([]string{"controller"}, labels...))
	}
	return &series{
		reconciles: counter("ctrlkit_reconciles_total", "Reconciles, by result.", "result"),
		causes:     counter("ctrlkit_reconcile_causes_total", "Causes of reconciles. One reconcile can have several.", "cause"),
		failures:   counter("ctrlkit_failures_total", "Reconciles that failed, by the class of the failure. A wait is not a failure.", "class"),
		writes:     counter("ctrlkit_writes_total", "Writes to the API server.", "kind", "verb", "subresource", "outcome"),
		hotLoops:   counter("ctrlkit_hot_loops_total", "Hot loops that were found: writes to an object that cause one reconcile after the other."),
		steps:      counter("ctrlkit_steps_total", "Phases of steps that have ended, by outcome.", "step", "phase", "outcome"),
		actions:    counter("ctrlkit_actions_total", "Actions of workflows that have ended, by outcome.", "step", "action", "outcome"),

		stepDuration:   histogram("ctrlkit_step_duration_seconds", "How long phases of steps took.", "step", "phase"),
		actionDuration: histogram("ctrlkit_action_duration_seconds", "How long actions of workflows took.", "step", "action"),

		names: newNames(),
	}
}

func (s *series) all() []prometheus.Collector {
	return []prometheus.Collector{
		s.reconciles, s.causes, s.failures, s.writes, s.hotLoops, s.steps, s.actions, s.stepDuration, s.actionDuration,
	}
}

// Describe is called when the series are registered.
func (s *series) Describe(descriptions chan<- *prometheus.Desc) {
	for _, c := range s.all() {
		c.Describe(descriptions)
	}
}

// Collect is called when the registry is read.
func (s *series) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range s.all() {
		c.Collect(metrics)
	}
}

func (s *series) started(controller string, e journal.Started) {
	for _, c := range e.Causes {
		s.causes.WithLabelValues(controller, string(c.Kind)).Add(float64(max(c.Times, 1)))
	}
}

func (s *series) stepEnded(controller string, e journal.StepEnded) {
	step, phase := s.names.step(controller, e.Step), string(e.Phase)
	s.steps.WithLabelValues(controller, step, phase, e.Outcome.Word()).Inc()
	s.stepDuration.WithLabelValues(controller, step, phase).Observe(e.Duration.Seconds())
}

func (s *series) actionEnded(controller string, e journal.ActionEnded) {
	step, action := s.names.action(controller, e.Step, e.Action)
	s.actions.WithLabelValues(controller, step, action, e.Outcome.Word()).Inc()
	s.actionDuration.WithLabelValues(controller, step, action).Observe(e.Duration.Seconds())
}

func (s *series) wrote(controller string, e journal.Wrote) {
	outcome := journal.Outcome{Err: e.Err}.Word()
	s.writes.WithLabelValues(controller, s.names.kind(controller, e.Object.Kind), e.Verb, e.Subresource, outcome).Inc()
}

func (s *series) finished(controller string, e journal.Finished) {
	s.reconciles.WithLabelValues(controller, string(e.Result)).Inc()
	if e.Outcome.Err != nil {
		s.failures.WithLabelValues(controller, s.names.class(controller, cmp.Or(e.Outcome.Class, other))).Inc()
	}
}
