// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/ctrlkit/ctrlkit/journal"
)

const (
	// mostLinks is how many triggers a reconcile is linked to: the first ones, which put it into
	// the queue.
	mostLinks = 8

	// mostQueued is for how many objects triggers are kept. An event that a predicate filters out
	// afterwards never causes a reconcile.
	mostQueued = 10_000
)

// queued is an object in the queue of a controller.
type queued struct {
	controller string
	object     journal.Object
}

// triggered makes a span for an event that causes a reconcile, and keeps its context for the links
// of that.
func (t *Tracer) triggered(ctx context.Context, entry journal.Entry, e journal.Triggered) {
	attributes := append(identity(entry), attribute.String("cause", string(e.Cause.Kind)))
	if e.Cause.Verb != "" {
		attributes = append(attributes, attribute.String("verb", e.Cause.Verb))
	}
	if e.Cause.Object != (journal.Object{}) {
		attributes = append(attributes, attribute.String("object", e.Cause.Object.String()))
	}
	_, span := t.tracer.Start(ctx, "Triggered", trace.WithTimestamp(entry.Time), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(entry.Time))
	if !span.SpanContext().IsSampled() {
		return // a link to it would be broken
	}
	t.triggers.update(queued{entry.Controller, entry.Object}, func(known []trace.SpanContext) []trace.SpanContext {
		if len(known) >= mostLinks {
			return known
		}
		return append(known, span.SpanContext())
	})
}

// links returns and removes the triggers of the reconcile that begins.
func (t *Tracer) links(entry journal.Entry) []trace.Link {
	triggers, _ := t.triggers.take(queued{entry.Controller, entry.Object})
	links := make([]trace.Link, len(triggers))
	for i, c := range triggers {
		links[i] = trace.Link{SpanContext: c}
	}
	return links
}
