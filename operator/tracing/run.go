// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A run is a reconcile that has not finished, with its spans.
type run struct {
	tracer trace.Tracer
	span   trace.Span

	mu    sync.Mutex // for all below
	open  []part     // in the order in which they began
	waits []reportedWait
	ended bool
}

// A part is a phase of a step or an action that has begun and not ended.
type part struct {
	id    partID
	began time.Time
	span  trace.Span
}

// A partID identifies a part as far as its events do. An action has no phase, a phase no action.
type partID struct {
	step   string
	phase  journal.Phase
	action string
}

// A reportedWait is one that is already an event of a span of this step.
type reportedWait struct {
	step string
	wait journal.Wait
}

// observe handles what may happen between the start and the end of a reconcile.
func (r *run) observe(ctx context.Context, entry journal.Entry) {
	switch e := entry.Event.(type) {
	case journal.StepEnded:
		r.partEnded(entry.Time, partID{step: e.Step, phase: e.Phase}, e.Outcome, e.Duration)
	case journal.ActionBegan:
		r.actionBegan(ctx, entry.Time, e)
	case journal.ActionEnded:
		r.partEnded(entry.Time, partID{step: e.Step, action: e.Action}, e.Outcome, e.Duration)
	case journal.Wrote:
		r.wrote(entry.Time, e)
	}
}

func (r *run) started(e journal.Started) {
	causes := make([]string, len(e.Causes))
	for i, c := range e.Causes {
		causes[i] = c.String()
	}
	r.span.SetAttributes(attribute.Int64("generation", e.Generation), attribute.StringSlice("causes", causes))
}

func (r *run) stepBegan(ctx context.Context, at time.Time, e journal.StepBegan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(ctx, r.span, e.Step+": "+string(e.Phase), part{id: partID{step: e.Step, phase: e.Phase}, began: at},
		attribute.String("step", e.Step), attribute.String("phase", string(e.Phase)))
}

func (r *run) actionBegan(ctx context.Context, at time.Time, e journal.ActionBegan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(ctx, r.stepSpan(e.Step), e.Action, part{id: partID{step: e.Step, action: e.Action}, began: at},
		attribute.String("step", e.Step), attribute.String("action", e.Action))
}

// begin starts the span of a part. The lock is held.
func (r *run) begin(ctx context.Context, parent trace.Span, name string, p part, attributes ...attribute.KeyValue) {
	if r.ended {
		return
	}
	_, p.span = r.tracer.Start(trace.ContextWithSpan(ctx, parent), name, trace.WithTimestamp(p.began), trace.WithAttributes(attributes...))
	r.open = append(r.open, p)
}

// stepSpan returns the span of the phase of a step that is open, and that of the reconcile if there
// is none. The lock is held.
func (r *run) stepSpan(step string) trace.Span {
	for _, p := range slices.Backward(r.open) {
		if p.id.step == step && p.id.phase != "" {
			return p.span
		}
	}
	return r.span
}

func (r *run) partEnded(at time.Time, id partID, outcome journal.Outcome, duration time.Duration) {
	r.mu.Lock()
	p, ok := r.close(id, at.Add(-duration))
	waits := r.unreported(id, outcome.Waits)
	r.mu.Unlock()
	if !ok {
		return
	}
	p.span.SetAttributes(attribute.String("outcome", outcome.Word()))
	end(p.span, at, outcome, waits)
}

// close removes a part from those that are open. Of several with the same ID, which run
// concurrently, it takes the one that began nearest to the time. The lock is held.
func (r *run) close(id partID, began time.Time) (part, bool) {
	nearest := -1
	for i, p := range r.open {
		if p.id == id && (nearest < 0 || p.began.Sub(began).Abs() < r.open[nearest].began.Sub(began).Abs()) {
			nearest = i
		}
	}
	if nearest < 0 {
		return part{}, false
	}
	p := r.open[nearest]
	r.open = slices.Delete(r.open, nearest, nearest+1)
	return p, true
}

// unreported returns the waits that are not yet events of a span below this part, and records that
// they are now. The step of an action, and the reconcile, wait for what it waits for. The lock is
// held.
func (r *run) unreported(id partID, waits []journal.Wait) []journal.Wait {
	var unreported []journal.Wait
	for _, w := range waits {
		below := id.action == "" && slices.ContainsFunc(r.waits, func(reported reportedWait) bool {
			return reported.wait == w && (id == partID{} || reported.step == id.step)
		})
		if !below {
			unreported = append(unreported, w)
		}
	}
	for _, w := range unreported {
		r.waits = append(r.waits, reportedWait{id.step, w})
	}
	return unreported
}

// wrote adds an event for a write. The action that wrote is not known.
func (r *run) wrote(at time.Time, e journal.Wrote) {
	r.mu.Lock()
	span := r.stepSpan(e.Step)
	r.mu.Unlock()
	attributes := []attribute.KeyValue{
		attribute.String("verb", e.Verb),
		attribute.String("kind", e.Object.Kind),
		attribute.String("namespace", e.Object.Namespace),
		attribute.String("name", e.Object.Name),
	}
	if e.Subresource != "" {
		attributes = append(attributes, attribute.String("subresource", e.Subresource))
	}
	if len(e.Fields) > 0 {
		attributes = append(attributes, attribute.StringSlice("fields", e.Fields))
	}
	if e.Err != nil {
		attributes = append(attributes, attribute.String("error", e.Err.Error()))
	}
	span.AddEvent("Write", trace.WithTimestamp(at), trace.WithAttributes(attributes...))
}

func (r *run) finished(at time.Time, e journal.Finished) {
	r.endOpen(at)
	r.mu.Lock()
	waits := r.unreported(partID{}, e.Outcome.Waits)
	r.mu.Unlock()
	r.span.SetAttributes(attribute.String("result", string(e.Result)))
	end(r.span, at, e.Outcome, waits)
}

// end ends a run whose result is not known.
func (r *run) end(at time.Time) {
	r.endOpen(at)
	r.span.End(trace.WithTimestamp(at))
}

// endOpen ends the parts that are open, the latest first, and prevents others from beginning.
func (r *run) endOpen(at time.Time) {
	r.mu.Lock()
	open := r.open
	r.open, r.ended = nil, true
	r.mu.Unlock()
	for _, p := range slices.Backward(open) {
		p.span.End(trace.WithTimestamp(at))
	}
}

// end ends a span with its outcome.
func end(span trace.Span, at time.Time, outcome journal.Outcome, waits []journal.Wait) {
	for _, w := range waits {
		attributes := []attribute.KeyValue{attribute.String("for", w.For)}
		if w.Every > 0 {
			attributes = append(attributes, attribute.String("every", w.Every.String()))
		}
		span.AddEvent("Wait", trace.WithTimestamp(at), trace.WithAttributes(attributes...))
	}
	if outcome.Err != nil {
		span.SetAttributes(attribute.String("class", outcome.Class))
		span.SetStatus(codes.Error, outcome.Err.Error())
	}
	span.End(trace.WithTimestamp(at))
}
