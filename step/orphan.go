// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// orphans runs the pending cleanups of objects of a name that are gone. The API server has removed
// them although they had our finalizer, or should have had it: a finalizer that is added while the
// object is being deleted may be lost with it.
type orphans[T client.Object] struct{ run *run[T] }

// requeueOrphan is when a cleanup that waits is tried again for an object that does not exist any
// more: no event may arrive.
const requeueOrphan = 30 * time.Second

// cleanUp runs the cleanups, each from the last known state of its object.
func (o orphans[T]) cleanUp(ctx context.Context) outcome {
	r := o.run
	for {
		last, ok := r.memory.protection.firstOrphan()
		if !ok {
			return outcome{}
		}
		log.FromContext(ctx).Info("Cleaning up after an object that was removed without its cleanup", "uid", last.GetUID())
		orphan := &run[T]{engine: r.engine, memory: r.memory, journal: r.journal, now: r.now, began: r.began, read: last, failures: r.failures}
		orphan.prepare(ctx)
		orphan.detach()
		out := orphan.outcome(r.engine.plan.cleanup.Run(context.WithValue(ctx, requestKey{}, &orphan.req)))
		if !out.passed {
			if out.err == nil && out.after == 0 {
				out.after = requeueOrphan
			}
			return out
		}
		r.memory.protection.dropOrphan()
	}
}

// blockSuccessor ends a reconcile in which a pending cleanup did not pass. An object that has the
// name now has to wait, because what is outside the cluster may have the same name, too. Its
// condition says so.
func (o orphans[T]) blockSuccessor(ctx context.Context, out outcome) (reconcile.Result, error) {
	r := o.run
	last, _ := r.memory.protection.firstOrphan()
	obj, err := r.engine.resource.cached(ctx, r.key())
	if err != nil || obj.GetUID() == last.GetUID() {
		return o.end(ctx, out) // there is no successor, or the next reconcile finds it
	}
	if reason, _ := pause(obj); reason != "" || !obj.GetDeletionTimestamp().IsZero() {
		return o.end(ctx, out)
	}
	r.read = obj
	r.memory.startFor(obj)
	r.prepare(ctx)
	r.failures.classify(ctx, &out)
	if set := r.req.Conditions; set != nil {
		why, severity := "it waits for "+textOf(out.waits), condition.SeverityWarning
		switch {
		case out.err != nil:
			why, severity = out.err.Error(), max(severity, out.failure.Severity)
		case len(out.waits) == 0:
			why = "it continues soon"
		}
		set.MarkFailed(severity, reasonPredecessor, fmt.Sprintf("an object of this name with UID %s was deleted, and its cleanup is not done: %s", last.GetUID(), why))
		r.conditions.summarize(&out, "")
		out = r.saver.save(ctx, out, r)
	}
	return o.end(ctx, out)
}

// end ends a reconcile in which a pending cleanup did not pass.
func (o orphans[T]) end(ctx context.Context, out outcome) (reconcile.Result, error) {
	if out.err != nil {
		return o.run.finish(ctx, journal.ResultFailed, out)
	}
	return o.run.finish(ctx, journal.ResultWaiting, out)
}

// gone ends a reconcile of an object that does not exist: it runs the pending cleanup, and drops
// what is known of the object.
func (o orphans[T]) gone(ctx context.Context) (reconcile.Result, error) {
	r := o.run
	r.noteStartedUnread(ctx)
	r.engine.options.Shard.Forget(r.engine.resource.kind, r.key())
	if err := o.dropMoved(ctx); err != nil {
		return r.finish(ctx, journal.ResultFailed, outcome{err: err})
	}
	if out := o.cleanUp(ctx); out.err != nil || out.after > 0 {
		return o.end(ctx, out)
	}
	if wait := o.await(ctx); wait > 0 {
		return r.finish(ctx, journal.ResultWaiting, outcome{after: wait})
	}
	r.engine.memories.forget(r.key())
	r.engine.limiter.Forget(r.failures.request)
	if r.journal != nil {
		r.journal.Note(ctx, journal.Finished{Result: journal.ResultGone, Duration: time.Since(r.began)})
	}
	return reconcile.Result{}, nil
}

// await returns how long to wait for the event with the last state of an object whose cleanup is
// pending: the cache drops an object before the watch reports it. Zero means that there is nothing
// to wait for.
func (o orphans[T]) await(ctx context.Context) time.Duration {
	m := o.run.memory
	switch {
	case !m.protection.isPending():
		return 0
	case m.missed.IsZero():
		m.missed = track.MomentOf(o.run.now)
	case m.missed.Since(o.run.now) > longestStale:
		log.FromContext(ctx).Error(nil, "An object was removed without its cleanup, and its last state is not known: is the controller made by Engine.Complete?", "uid", m.uid)
		return 0
	}
	return requeueStale
}
