// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A gate ends a reconcile before its request is made, or lets it pass.
type gate[T client.Object] struct {
	name string
	// check returns the result of the reconcile, and whether it ends here. An error ends it.
	check func(ctx context.Context, r *run[T]) (result reconcile.Result, ends bool, err error)
}

// gates returns all gates, in their order. Those before the object is read are for any object of
// its name; the cheap ones come before those that read.
func gates[T client.Object]() []gate[T] {
	return []gate[T]{
		{"a cleanup is pending for an object of this name that is gone", awaitCleanup[T]},
		{"no watch has reported a change", skipUnreported[T]},
		{"the object does not exist", awaitObject[T]},
		{"another shard has the object", leaveToShard[T]},
		{"another operator reconciles the object", leaveAlone[T]},
		{"the cache lacks our last write", awaitCache[T]},
		{"a hot loop is slowed down", awaitSlowed[T]},
		{"nothing has changed", skipUnchanged[T]},
		{"the object is paused", awaitResume[T]},
	}
}

// awaitCleanup runs the pending cleanup of an object of this name that is gone. It comes before
// the cache is read: what is read first may be that very object, and its Do would make again what
// the cleanup has removed.
func awaitCleanup[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	if !r.memory.protection.hasOrphans() {
		return reconcile.Result{}, false, nil
	}
	r.noteStartedUnread(ctx)
	o := orphans[T]{r}
	if err := o.dropMoved(ctx); err != nil {
		result, err := r.finish(ctx, journal.ResultFailed, outcome{err: err})
		return result, true, err
	}
	if out := o.cleanUp(ctx); out.err != nil || out.after > 0 {
		result, err := o.blockSuccessor(ctx, out)
		return result, true, err
	}
	return reconcile.Result{}, false, nil
}

// skipUnreported ends a reconcile of an object that was found unchanged before, if no watch has
// reported a change of it or of an input since. It reads nothing. See [track.Feed].
func skipUnreported[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	e, u := r.engine, &r.memory.unchanged
	if !e.sees || !u.idle() || !u.inTime(r.now) {
		return reconcile.Result{}, false, nil
	}
	var kind T
	if !e.feed.UnchangedSince(u.stamp, kind, r.key(), u.inputs) {
		return reconcile.Result{}, false, nil
	}
	if r.journal != nil {
		r.journal.UID = r.memory.uid
		r.journal.Note(ctx, journal.Started{Causes: r.causes, Generation: u.generation, ResourceVersion: u.version, Finalizer: e.finalizers.own})
		r.started = true
	}
	return r.endEarly(ctx, journal.ResultConverged, u.after(r.now)), true, nil
}

// awaitObject reads the object from the cache. Of one that does not exist nothing is kept.
func awaitObject[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	obj, err := r.engine.resource.cached(ctx, r.key())
	switch {
	case apierrors.IsNotFound(err):
		r.engine.forgetReads(r.key())
		result, err := orphans[T]{r}.gone(ctx)
		return result, true, err
	case err != nil:
		r.noteStartedUnread(ctx)
		err = fmt.Errorf("reading %s %s: %w", r.engine.resource.kind.Kind, r.key(), err)
		result, err := r.finish(ctx, journal.ResultFailed, outcome{err: err})
		return result, true, err
	}
	r.read = obj
	if r.journal != nil && !r.started {
		r.journal.UID = obj.GetUID() // as long as no event of the run was recorded
	}
	r.memory.startFor(obj)
	r.memory.hot.Expire(r.now)
	r.beganWith = r.memory.written.version
	return reconcile.Result{}, false, nil
}

// leaveAlone ends the reconcile of an object that a step knows to be another operator's. Not even
// its conditions are written.
func leaveAlone[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	reason, message := r.engine.plan.gated(r.read)
	reported := r.memory.gated
	if r.memory.gated = message; reason == "" {
		return reconcile.Result{}, false, nil
	}
	r.noteStarted(ctx)
	if r.journal != nil {
		r.journal.Note(ctx, journal.Gated{Reason: reason, Message: message})
	}
	if recorder := r.engine.options.Recorder; recorder != nil && reported != message {
		recorder.Eventf(r.read, nil, corev1.EventTypeNormal, reason, "Reconcile", "%s", message)
	}
	return r.endEarly(ctx, journal.ResultPaused, 0), true, nil
}

// awaitCache waits until the cache has our last writes to the object and its children.
func awaitCache[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	m := r.memory
	if !m.written.isNewerThan(r.read, r.now) && !m.children.Stale(ctx, r.engine.options.Client, r.now) {
		return reconcile.Result{}, false, nil
	}
	m.timer.Set(r.now, requeueStale, false)
	m.echo.Store(nil) // the backoff is over: the event comes before that time
	return r.endEarly(ctx, journal.ResultStale, requeueStale), true, nil
}

// awaitSlowed slows a hot loop down. A change of the spec or of the policy, a deletion and a pause
// do not wait.
func awaitSlowed[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	if !r.memory.hot.Slows(r.read, r.now) {
		return reconcile.Result{}, false, nil
	}
	if reason, _ := pause(r.read); reason != "" {
		return reconcile.Result{}, false, nil
	}
	return r.endEarly(ctx, journal.ResultWaiting, r.memory.hot.Until().Sub(r.now)), true, nil
}

// skipUnchanged ends a reconcile whose steps would see nothing new. See [Options.SkipUnchanged].
func skipUnchanged[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	m := r.memory
	if m.unchanged.isOf(r.read, r.now) {
		switch {
		case !m.unchanged.idle():
			r.saved = m.unchanged.inputs
		case m.unchanged.inputs.Unchanged(ctx, r.engine.options.Client):
			m.unchanged.stamp = r.stamp
			return r.endEarly(ctx, journal.ResultConverged, m.unchanged.after(r.now)), true, nil
		}
	}
	m.unchanged = converged{}
	return reconcile.Result{}, false, nil
}

// awaitResume leaves a paused object alone. Its condition says so, and its other conditions stay
// as they are.
func awaitResume[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	reason, message := pause(r.read)
	if reason == "" {
		return reconcile.Result{}, false, nil
	}
	r.prepare(ctx)
	r.noteStarted(ctx)
	if r.journal != nil {
		r.journal.Note(ctx, journal.Gated{Reason: reason, Message: message})
	}
	out, how := outcome{}, journal.ResultPaused
	if set := r.req.Conditions; set != nil && !r.engine.options.Partial {
		r.req.Object = r.read.DeepCopyObject().(T) //nolint:errcheck // a copy has the type
		set.ResetToPaused(reason, message)
		if err := set.Store(r.req.Object); err == nil {
			out = r.saver.save(ctx, out, r)
		}
	}
	if out.err != nil {
		how = journal.ResultFailed
	}
	result, err := r.finish(ctx, how, out)
	return result, true, err
}
