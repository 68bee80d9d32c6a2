// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Reconcile brings an object nearer to what its spec wants. The error is what has failed, all
// causes joined; waits are not errors.
func (e *Engine[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel, err := tenure.Begin(ctx)
	defer cancel()
	if errors.Is(err, tenure.ErrExpired) {
		return reconcile.Result{RequeueAfter: tenure.RequeueAfter}, nil
	}
	if !e.drain.take(request.NamespacedName) { // it is being handed over
		return reconcile.Result{RequeueAfter: requeueStale}, nil
	}
	defer e.drain.release(request.NamespacedName)
	ctx, r := e.begin(ctx, request)
	for i := range e.gates {
		if result, ends, err := e.gates[i].check(ctx, r); ends || err != nil {
			return result, err
		}
	}
	r.prepare(ctx)
	r.noteStarted(ctx)
	ctx = context.WithValue(ctx, requestKey{}, &r.req)
	switch {
	case r.read.GetDeletionTimestamp().IsZero():
		return r.do(ctx)
	case e.finalizers.protects(r.read):
		return r.cleanUp(ctx)
	default:
		return r.release(ctx)
	}
}

// begin returns the run of a reconcile, and records its causes.
func (e *Engine[T]) begin(ctx context.Context, request reconcile.Request) (context.Context, *run[T]) {
	memory := e.memories.of(request.NamespacedName)
	now := time.Now()
	r := &run[T]{engine: e, memory: memory, now: now, began: now, stamp: e.feed.Now(), failures: failures{
		table: &e.options.Failures, limiter: e.limiter, request: request, conflicts: &memory.conflicts,
	}}
	seen := e.causes.Take(request.NamespacedName)
	if e.observer != nil {
		r.journal = journal.NewRun(e.observer, uuid.NewUUID(), e.options.Name, r.self())
		ctx = journal.ContextWithRun(ctx, r.journal)
		r.causes = memory.timer.Causes(seen, memory.written.version, now)
	}
	return ctx, r
}

// do runs the steps for an object that is not being deleted: the finalizer first, then Do of each
// step, then Post.
func (r *run[T]) do(ctx context.Context) (reconcile.Result, error) {
	out := r.outcome(r.finalizing.ensure(ctx))
	if out.passed {
		out = r.outcome(r.engine.plan.do.Run(ctx))
		r.noteSkipped(ctx)
	}
	out = r.post(ctx, out)
	r.conditions.summarize(&out, "")
	out = r.saver.save(ctx, out, r)
	if out.err == nil && len(out.waits) == 0 {
		r.noteUnchanged(out)
	}
	return r.finish(ctx, r.conditions.result(out), out)
}

// cleanUp cleans up after an object that is being deleted, and removes its finalizer.
func (r *run[T]) cleanUp(ctx context.Context) (reconcile.Result, error) {
	r.memory.protection.setHeld(r.read.GetResourceVersion())
	var out outcome
	switch err := r.finalizing.confirm(ctx); {
	case errors.Is(err, errStaleFinalizer):
		return r.endEarly(ctx, journal.ResultStale, requeueStale), nil
	case err != nil:
		out = outcome{err: err}
	default:
		out = r.outcome(r.engine.plan.cleanup.Run(ctx))
	}
	done, how, final := out.passed, journal.ResultWaiting, false
	if done {
		out.after = 0 // nothing is left to reconcile
	}
	out = r.post(ctx, out) // its failure does not keep the object
	if done {
		how = journal.ResultDeleted
		r.memory.protection.setCleaned()
		final = r.finalizing.remove() == 0
	}
	switch {
	case !done:
		r.conditions.summarize(&out, ReasonCleaningUp)
	case final:
		r.saver.keepStatus()
	default:
		r.conditions.summarize(&out, reasonCleanedUp)
	}
	out = r.saver.save(ctx, out, r)
	if reached := r.conditions.result(out); out.err != nil || !done && reached == journal.ResultStalled {
		return r.finish(ctx, reached, out)
	}
	if done {
		r.memory.written.final = final && r.saver.writer.saved.metadata
	}
	return r.finish(ctx, how, out)
}

// release ends a reconcile of an object that is being deleted and does not have our finalizer:
// because it was cleaned up, because it never had one, or because another client has removed it.
// Nothing is cleaned up. The remaining finalizers belong to others.
func (r *run[T]) release(ctx context.Context) (reconcile.Result, error) {
	reason := reasonDeleting
	switch {
	case r.engine.finalizers.own == "":
		r.finalizing.dropRetired()
	case r.memory.protection.isCleaned() || r.conditions.says(reasonCleanedUp):
		reason = reasonCleanedUp
	case r.finalizing.wasRemoved() || r.conditions.says(reasonFinalizerRemoved):
		reason = reasonFinalizerRemoved
		if !r.conditions.says(reasonFinalizerRemoved) {
			r.finalizing.reportRemovedOnce("the object is being deleted, and nothing is cleaned up")
		}
	}
	out := r.post(ctx, outcome{passed: true})
	if len(r.req.Object.GetFinalizers()) > 0 {
		r.conditions.summarize(&out, reason)
	} else {
		r.saver.keepStatus()
	}
	if out = r.saver.save(ctx, out, r); out.err != nil {
		return r.finish(ctx, journal.ResultFailed, out)
	}
	return r.finish(ctx, journal.ResultDeleted, out)
}

// post runs Post of each step, with some more time if the context is done. Then it takes over the
// conditions that steps have set on the object itself, and classifies what has failed.
func (r *run[T]) post(ctx context.Context, out outcome) outcome {
	r.req.failure = out.err
	if post := r.engine.plan.post; post != nil {
		more, cancel := granted(ctx)
		out = out.join(r.outcome(post.Run(more)))
		cancel()
	}
	out = r.conditions.adopt(out)
	r.failures.classify(ctx, &out)
	return out
}

// noteSkipped records which steps were not reached, also because of an exit.
func (r *run[T]) noteSkipped(ctx context.Context) {
	if r.journal == nil {
		return
	}
	last := ""
	for _, p := range r.engine.plan.parts {
		if r.req.ran[p.index] {
			last = p.Name
			continue
		}
		r.journal.Note(ctx, journal.StepSkipped{Step: p.Name, After: last})
	}
}

// noteUnchanged notes what an object has read that is done, if that is all it depends on. If it or
// another one was written, [Request.OnlySaved] of the next reconcile depends on it.
func (r *run[T]) noteUnchanged(out outcome) {
	inputs := r.record.Inputs()
	other := func(w *track.Write) bool { return w.Object != r.self() && !w.Own }
	unknown := func(w *track.Write) bool { return other(w) && !w.Input }
	if inputs == nil || r.saver.stale || slices.ContainsFunc(r.record.Writes(), unknown) || r.memory.hot.Text() != "" || r.saver.writer.rebased {
		return
	}
	version, believed := r.read.GetResourceVersion(), longestUnchanged
	if r.saver.writer.saved.any() {
		version, inputs.Wrote = r.memory.written.version, true
	}
	if inputs.Wrote = inputs.Wrote || slices.ContainsFunc(r.record.Writes(), other); inputs.Wrote {
		believed = longestWritten
	}
	r.memory.unchanged = converged{
		version: version, generation: r.read.GetGeneration(), inputs: inputs.Clip(), until: track.MomentOf(r.now.Add(believed)), stamp: r.stamp,
	}
	if out.after > 0 {
		r.memory.unchanged.requeue = track.MomentOf(r.now.Add(out.after))
	}
}

// unsaved joins to an outcome what could not be saved, and classifies it.
func (r *run[T]) unsaved(ctx context.Context, out outcome, errs ...error) outcome {
	classified := out.err != nil
	for _, err := range errs {
		out = out.join(outcome{err: err})
	}
	if !classified {
		r.failures.classify(ctx, &out)
	}
	return out
}

// resummarize computes the conditions again, so that they name what could not be saved.
func (r *run[T]) resummarize(out outcome) outcome {
	deletion := ""
	if !r.read.GetDeletionTimestamp().IsZero() {
		deletion = ReasonCleaningUp
	}
	r.conditions.summarize(&out, deletion)
	return out
}
