// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"

	"github.com/go-logr/logr"
)

// Logger returns an observer that writes events to logger, with constant messages:
//
//   - at verbosity 0 hot loops,
//   - at 1 also reconciles, what steps and actions do, and writes,
//   - at 2 also reads, causes as they arrive, and the begin of each step and action.
//
// It logs neither waits nor failures as errors: controller-runtime logs the error that Reconcile
// returns, once.
func Logger(logger logr.Logger) Observer { return logs{logger} }

type logs struct{ logger logr.Logger }

func (l logs) Observe(_ context.Context, e Entry) {
	level := 1
	switch e.Event.(type) {
	case Read, Triggered, StepBegan, ActionBegan:
		level = 2
	case HotLoop:
		level = 0
	}
	logger := l.logger.V(level)
	if !logger.Enabled() {
		return
	}
	logger = logger.WithValues("controller", e.Controller, "kind", e.Object.Kind, "namespace", e.Object.Namespace, "name", e.Object.Name)
	if e.Run != nil {
		logger = logger.WithValues("run", e.Run.ID)
	}
	message, values := logLine(e.Event)
	logger.Info(message, values...)
}

// logLine returns the constant message of an event, and its key-value pairs.
func logLine(event Event) (message string, values []any) {
	switch e := event.(type) {
	case Triggered:
		return "Reconcile triggered", []any{"cause", e.Cause.String()}
	case Started:
		return "Reconcile begins", []any{"causes", joinCauses(e.Causes), "generation", e.Generation, "deleting", e.Deleting}
	case StepBegan:
		return "Step begins", []any{"step", e.Step, "phase", e.Phase}
	case StepEnded:
		return "Step ended", append([]any{"step", e.Step, "phase", e.Phase, "took", e.Duration}, e.Outcome.values()...)
	case StepLate:
		return "Step takes long", []any{"step", e.Step, "phase", e.Phase, "after", e.After, "limit", e.Limit}
	case StepSkipped:
		return "Step skipped", []any{"step", e.Step, "after", e.After}
	case ActionBegan:
		return "Action begins", []any{"step", e.Step, "action", e.Action}
	case ActionEnded:
		return "Action ended", append([]any{"step", e.Step, "action", e.Action, "took", e.Duration}, e.Outcome.values()...)
	case ActionBlocked:
		return "Action blocked", []any{"step", e.Step, "action", e.Action, "by", e.By}
	case Read:
		return "Read", withErrorValue([]any{"object", e.Object.String(), "live", e.Live}, e.Err)
	case Wrote:
		return "Wrote", withErrorValue([]any{
			"step", e.Step, "verb", e.Verb, "object", e.Object.String(), "subresource", e.Subresource, "fields", e.Fields, "noOp", e.NoOp,
		}, e.Err)
	case Called:
		return "Called external service", withErrorValue([]any{"step", e.Step, "what", e.What, "took", e.Duration}, e.Err)
	case Changed:
		return "Changed external resource", withErrorValue([]any{"step", e.Step, "verb", e.Verb, "id", e.ID, "drift", e.Drift}, e.Err)
	case Kept:
		return "Set kept", []any{"step", e.Step, "ready", e.ready(), "objects", len(e.Children)}
	case Gated:
		return "Left alone", []any{"reason", e.Reason, "why", e.Message}
	case HotLoop:
		return "Hot loop", []any{
			"reconciles", e.Reconciles, "within", e.Within, "fields", e.Fields, "managers", e.Managers, "slowed", e.Slowed,
		}
	case Unwatched:
		return "Read a kind that nothing watches", []any{"step", e.Step, "object", e.Object.String()}
	case Requeued:
		return "Requeued", []any{"after", e.After, "why", e.Why, "failures", e.Failures}
	case Finished:
		return "Reconcile ended", append([]any{"result", e.Result, "took", e.Duration}, e.Outcome.values()...)
	default:
		return "Event", []any{"event", event.String()}
	}
}

// values returns the key-value pairs of an outcome.
func (o Outcome) values() []any {
	var values []any
	if o.Err != nil {
		values = append(values, "class", o.Class, "failure", o.Err.Error())
	}
	if o.Stalled != "" {
		values = append(values, "stalled", o.Stalled)
	}
	for _, w := range o.Waits {
		values = append(values, "waitsFor", w.For)
	}
	return values
}

func withErrorValue(values []any, err error) []any {
	if err == nil {
		return values
	}
	return append(values, "failure", err.Error())
}
