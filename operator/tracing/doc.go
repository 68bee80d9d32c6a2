// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package tracing makes OpenTelemetry spans from a journal.
//
//	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
//	engine, err := step.New(step.Options[*v1.Database]{
//		...,
//		Observers: []journal.Observer{tracing.New(provider)},
//	}, ...)
//
// A trace looks like this:
//
//	Triggered                 one for each event that caused the reconcile, each a trace of its own
//	Reconcile Database        linked to them; a child of the span in the context, if there is one
//	├ Account: Do             a phase of a step, with an event for each write
//	└ Run: Do
//	  ├ Migrate               an action of a workflow, with an event for each wait
//	  └ Backup
//
// The spans:
//
//   - A wait is an event of the innermost span that reported it, and no error: only failures set
//     the status of a span to Error.
//   - A write is an event of the span of the step, because the journal does not have the action
//     that wrote.
//   - A span without a result or an outcome belongs to something that was still running when the
//     reconcile ended, as an action under a Timeout may be.
//
// An observer can't change the context of what it observes. Spans that a step starts by itself,
// such as those of an HTTP client, are therefore not children of these.
package tracing
