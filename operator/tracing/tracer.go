// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/ctrlkit/ctrlkit/journal"
)

// mostRuns is how many running reconciles are kept. Only a program that does not report their end
// comes near it.
const mostRuns = 10_000

// A Tracer is a [journal.Observer] that makes a span for each reconcile, with a child for each
// phase of a step and for each action. [New] returns one. It is safe for concurrent use.
//
// The times of spans are those of the journal. A reconcile is kept from its first event to its
// Finished; of more than 10,000 reconciles that have not finished, the span of the oldest ends.
type Tracer struct {
	tracer   trace.Tracer
	runs     *bounded[*journal.Run, *run]
	triggers *bounded[queued, []trace.SpanContext]
}

var _ journal.Observer = (*Tracer)(nil)

// New returns an observer that makes spans with provider, or with the global one of package otel if
// it is nil. Observers must not block, so the provider should pass spans to a batcher, not to a
// syncer.
func New(provider trace.TracerProvider) *Tracer {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return &Tracer{
		tracer:   provider.Tracer("github.com/ctrlkit/ctrlkit/operator/tracing"),
		runs:     newBounded[*journal.Run, *run](mostRuns),
		triggers: newBounded[queued, []trace.SpanContext](mostQueued),
	}
}

// Observe starts, changes or ends spans.
func (t *Tracer) Observe(ctx context.Context, entry journal.Entry) {
	if e, ok := entry.Event.(journal.Triggered); ok {
		t.triggered(ctx, entry, e)
		return
	}
	if entry.Run == nil {
		return
	}
	switch e := entry.Event.(type) {
	case journal.Started:
		t.runOf(ctx, entry).started(e)
	case journal.StepBegan: // a pending cleanup comes before Started
		t.runOf(ctx, entry).stepBegan(ctx, entry.Time, e)
	case journal.Finished: // a reconcile that could not read its object has nothing but that
		r, ok := t.runs.take(entry.Run)
		if !ok {
			r = t.newRun(ctx, entry, entry.Time.Add(-e.Duration))
		}
		r.finished(entry.Time, e)
	default: // events of an abandoned action after the end are ignored
		if r, ok := t.runs.get(entry.Run); ok {
			r.observe(ctx, entry)
		}
	}
}

// runOf returns the run of an entry, and begins it if there is none.
func (t *Tracer) runOf(ctx context.Context, entry journal.Entry) *run {
	if r, ok := t.runs.get(entry.Run); ok {
		return r
	}
	r := t.newRun(ctx, entry, entry.Time)
	if dropped, ok := t.runs.put(entry.Run, r); ok {
		dropped.end(entry.Time)
	}
	return r
}

// newRun begins a run, with links to its causes.
func (t *Tracer) newRun(ctx context.Context, entry journal.Entry, began time.Time) *run {
	_, span := t.tracer.Start(ctx, "Reconcile "+entry.Object.Kind,
		trace.WithTimestamp(began), trace.WithAttributes(identity(entry)...), trace.WithLinks(t.links(entry)...))
	return &run{tracer: t.tracer, span: span}
}

// identity returns the attributes that say what a span is about.
func identity(entry journal.Entry) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("controller", entry.Controller),
		attribute.String("namespace", entry.Object.Namespace),
		attribute.String("name", entry.Object.Name),
	}
}
