// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
	"github.com/ctrlkit/ctrlkit/journal"
)

// ReasonOtherShard is the reason, in the journal, of a reconcile that leaves an object to another
// shard. See [Options.Shard].
const ReasonOtherShard = "OtherShard"

// leaveToShard leaves an object to the shard that has it, and hands over one that is to be moved: no
// reconcile of it runs but this one, or none at all (see [drain]).
func leaveToShard[T client.Object](ctx context.Context, r *run[T]) (reconcile.Result, bool, error) {
	e := r.engine
	verdict, err := e.options.Shard.Check(ctx, client.WithFieldOwner(e.options.Client, e.options.Name), e.resource.kind, r.read)
	switch verdict {
	case shard.VerdictOurs:
		return reconcile.Result{}, false, nil
	case shard.VerdictDrained:
		r.noteLeft(ctx, fmt.Sprintf("%s has handed it over", e.options.Shard))
		e.memories.drop(r.key())
		e.limiter.Forget(r.failures.request)
		return r.endEarly(ctx, journal.ResultGone, 0), true, nil
	case shard.VerdictElsewhere:
		r.noteLeft(ctx, fmt.Sprintf("it is not assigned to %s", e.options.Shard))
		e.memories.forget(r.key())
		return r.endEarly(ctx, journal.ResultPaused, 0), true, nil
	case shard.VerdictExpired:
		return reconcile.Result{RequeueAfter: tenure.RequeueAfter}, true, nil
	}
	result, err := r.finish(ctx, journal.ResultFailed, outcome{err: err})
	return result, true, err
}

func (r *run[T]) noteLeft(ctx context.Context, why string) {
	r.noteStarted(ctx)
	if r.journal != nil {
		r.journal.Note(ctx, journal.Gated{Reason: ReasonOtherShard, Message: why})
	}
}

// dropMoved drops pending cleanups of objects that exist: they have only left the cache of this shard.
func (o orphans[T]) dropMoved(ctx context.Context) error {
	r := o.run
	if r.engine.options.Shard == nil || !r.memory.protection.hasOrphans() {
		return nil
	}
	living, err := r.engine.resource.metadata(ctx, r.key(), r.journal)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("asking whether the object was deleted, or moved to another shard: %w", err)
	}
	r.memory.protection.dropOrphansOf(living.UID)
	return nil
}

// forgetMoved drops what is known of an object that was handed over, when an event reports what became
// of it.
func (e *Engine[T]) forgetMoved(key types.NamespacedName) {
	if e.options.Shard.Moves(e.resource.kind, key) {
		e.memories.drop(key)
	}
}

// drains reports whether the sharder asks for an object of this shard.
func (e *Engine[T]) drains(obj client.Object) bool {
	shard, labels := e.options.Shard, obj.GetLabels()
	if shard == nil || labels[shard.Label()] != shard.Name() {
		return false
	}
	_, drains := labels[shard.DrainLabel()]
	return drains
}

// handOverIdle hands over an object of which no reconcile runs, as the gate of a reconcile would.
// One with a pending cleanup is left to the reconcile, which comes to that first.
func (e *Engine[T]) handOverIdle(ctx context.Context, key types.NamespacedName) error {
	ctx, cancel, err := tenure.Begin(ctx)
	defer cancel()
	if err != nil {
		return err
	}
	obj, err := e.resource.cached(ctx, key)
	if err != nil || !e.drains(obj) || e.memories.of(key).protection.hasOrphans() {
		return client.IgnoreNotFound(err)
	}
	ctx, r := e.begin(ctx, reconcile.Request{NamespacedName: key})
	r.read = obj
	r.memory.startFor(obj)
	_, _, err = leaveToShard(ctx, r)
	return err
}
