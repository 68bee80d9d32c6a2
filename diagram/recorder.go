// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram

import (
	"context"
	"errors"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// A Recorder records how each action of a workflow ended. It is a hook: put it into the
// context under which the workflow is run, and draw its outcomes at any time, also while the
// workflow is running.
//
//	var recorder diagram.Recorder
//	result, err := workflow.Run(ctrlkit.ContextWithHook(ctx, &recorder))
//	diagram.Text(os.Stdout, ctrlkit.Describe(workflow), diagram.WithOutcomes(&recorder))
//
// The zero value is ready for use, and safe for concurrent use. Of an action that runs several
// times, as under Retry, in several reconciles, or because two actions have the same description,
// it keeps the latest outcome and counts the runs.
type Recorder struct {
	mu      sync.Mutex // guards what follows
	records []*record  // in the order of the first call for each action
	byName  map[string]*record
}

type record struct {
	outcome outcome
	active  int // runs that have begun and not ended
}

var _ ctrlkit.BlockHook = (*Recorder)(nil)

// BeforeAction implements [ctrlkit.Hook].
func (r *Recorder) BeforeAction(ctx context.Context, action string) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.record(action)
	rec.active++
	rec.outcome = outcome{Action: action, State: stateRunning, Runs: rec.outcome.Runs + 1}
	return ctx
}

// AfterAction implements [ctrlkit.Hook].
func (r *Recorder) AfterAction(_ context.Context, action string, result ctrl.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.record(action)
	rec.active = max(rec.active-1, 0)
	runs := rec.outcome.Runs
	rec.outcome = outcomeOf(action, result, err)
	rec.outcome.Runs = runs
}

// ActionBlocked implements [ctrlkit.BlockHook].
func (r *Recorder) ActionBlocked(_ context.Context, action string, by []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.record(action)
	rec.outcome = outcome{Action: action, State: stateBlocked, Runs: rec.outcome.Runs, BlockedBy: slices.Clone(by)}
}

// Outcome returns how an action ended, or how far it got, in words: "done", "waits for Secret
// default/db", "failed: quota exceeded", "not run".
func (r *Recorder) Outcome(action string) string { return r.outcomes().of(action).String() }

// outcomes returns a copy of what was recorded so far.
func (r *Recorder) outcomes() outcomes {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(outcomes, len(r.records))
	for i, rec := range r.records {
		all[i] = rec.outcome
		if rec.active > 0 {
			all[i] = outcome{Action: rec.outcome.Action, State: stateRunning, Runs: rec.outcome.Runs}
		}
	}
	return all
}

// Reset forgets everything, for the next reconcile.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records, r.byName = nil, nil
}

// record returns the record of action; the lock is held.
func (r *Recorder) record(action string) *record {
	if rec, ok := r.byName[action]; ok {
		return rec
	}
	if r.byName == nil {
		r.byName = map[string]*record{}
	}
	rec := &record{outcome: outcome{Action: action}}
	r.byName[action] = rec
	r.records = append(r.records, rec)
	return rec
}

func outcomeOf(action string, result ctrl.Result, err error) outcome {
	o := outcome{Action: action, State: stateDone, Waits: ctrlkit.Waits(err)}
	result, failure := ctrlkit.IgnoreExit(result, err)
	o.RequeueAfter = result.RequeueAfter
	switch {
	case failure != nil:
		o.State, o.Err = stateFailed, withoutName(action, failure)
	case len(o.Waits) > 0:
		o.State = stateWaiting
	case errors.Is(err, ctrlkit.ErrExit):
		o.State = stateExited
	case err != nil: // only the mark of RequeueWithin remains
	case !result.IsZero():
		o.State = stateRequeued
	}
	return o
}

// withoutName takes the name of the action off its error: it is drawn beside it.
func withoutName(action string, err error) error {
	if named, ok := err.(*ctrlkit.ActionError); ok && named.Action == action { //nolint:errorlint // only the outermost layer
		return named.Err
	}
	return err
}
