// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	outcomes "github.com/ctrlkit/ctrlkit/internal/engine/outcome"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step/internal/hotloop"
)

// A run is one reconcile.
type run[T client.Object] struct {
	engine   *Engine[T]
	memory   *memory[T]
	journal  *journal.Run // nil without an observer
	causes   []journal.Cause
	now      time.Time
	began    time.Time
	failures failures

	read    T    // as the cache has it; it is not a copy
	started bool // the journal has the start of the reconcile
	// stamp is of what the reconcile reads: no change that the feed had numbered before is missing.
	stamp track.Stamp
	// beganWith is the resource version after our last write before this reconcile.
	beganWith string
	// saved are the inputs of the last reconcile, if the object is as that one has saved it.
	saved *track.Inputs

	*work[T] // nil until the reconcile has passed the gates
}

// work is what a reconcile needs that has passed the gates: the request of its steps, and what the
// engine does around them.
type work[T client.Object] struct {
	record   track.Record
	client   track.Client
	live     track.Reader
	disputes hotloop.Disputes
	reads    reads

	req        Request[T]
	saver      saver[T]
	finalizing finalizing[T]
	conditions conditions[T]
}

// key returns the name of the object.
func (r *run[T]) key() client.ObjectKey { return r.failures.request.NamespacedName }

// self returns the name of the object for the journal.
func (r *run[T]) self() journal.Object {
	return journal.ObjectOf(r.engine.resource.kind, r.key())
}

// prepare copies the object and makes the request of the steps, and what the engine does around
// them.
func (r *run[T]) prepare(ctx context.Context) {
	r.work = &work[T]{}
	r.prepareRecord(ctx)
	r.prepareRequest(ctx)
	r.prepareSaver()
}

// prepareRecord makes what records the reads and writes of the steps.
func (r *run[T]) prepareRecord(ctx context.Context) {
	e, w := r.engine, r.work
	w.disputes = r.memory.hot.Disputes(ctx, e.options.Client, r.self(), r.read)
	w.record.Journal, w.record.Owner = r.journal, e.options.Name
	w.record.Self, w.record.APIReader = r.read, e.options.APIReader
	w.record.ReadOnly, w.record.Watched = refusePatch, e.unwatched.watched
	w.record.Watch(r.memory.hot, r.memory.hot.Reads())
	if e.options.SkipUnchanged {
		w.record.NoteInputs()
	}
	if len(e.readers) > 0 {
		w.reads.readers, w.reads.by, w.record.Reading = e.readers, r.key(), w.reads.note
	}
	w.client = *track.NewClient(client.WithFieldOwner(e.options.Client, e.options.Name), &w.record)
	if e.options.APIReader != nil {
		w.live = *track.NewReader(e.options.APIReader, &w.client)
	}
}

// prepareRequest makes the request of the steps.
func (r *run[T]) prepareRequest(ctx context.Context) {
	e, w := r.engine, r.work
	req := &w.req
	req.Object = r.read.DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	req.Client, req.Logger, req.Now = &w.client, log.FromContext(ctx), r.now
	if e.options.APIReader != nil {
		req.APIReader = &w.live
	}
	req.snapshot, req.record, req.journal, req.table, req.Recorder = r.read, &w.record, r.journal, &e.options.Failures, e.options.Recorder
	if r.saved != nil {
		req.onlySaved = func() bool { return r.saved.Unchanged(ctx, e.options.Client) }
	}
	req.limit = cmp.Or(e.options.StepTimeout, defaultStepTimeout)
	req.complete(e.plan, e.options.Name, e.resource.kind.Group, &e.finalizers)
	if set, err := condition.NewSet(req.Object, condition.Options{Declared: e.plan.declared, Retired: e.options.Retired, Partial: e.options.Partial, Now: r.now}); err == nil {
		if !e.options.Partial { // else it may write no status
			ensureStatus(req.Object)
			set.SetPaused("", "")
		}
		req.Conditions = set
	}
}

// prepareSaver makes what saves the object, and connects it with the request and the record.
func (r *run[T]) prepareSaver() {
	e, w := r.engine, r.work
	version := r.read.GetResourceVersion()
	w.conditions = conditions[T]{engine: e, req: &w.req, memory: r.memory}
	w.saver.writer = writer[T]{
		resource: &e.resource, read: r.read, req: &w.req, memory: r.memory, record: &w.record, conditions: &w.conditions,
		metadataVersion: version, statusVersion: version,
	}
	w.finalizing = finalizing[T]{finalizers: &e.finalizers, engine: e, saver: &w.saver, w: &w.saver.writer}
	w.req.save, w.record.Object, w.record.Save = w.saver.saveNow, w.req.Object, w.req.Save
	if e.finalizers.own != "" {
		w.req.protect, w.req.saveClaim = w.finalizing.put, w.finalizing.putClaim
	}
	if e.options.APIReader != nil && !r.memory.freshness.isSet() {
		w.record.Fence = (&fence[T]{&w.saver}).ensure
	}
}

// detach makes the request one of an object that is gone: no conditions are computed, nothing is
// saved, and no version is newer.
func (r *run[T]) detach() {
	r.req.Conditions, r.req.save = nil, nil
	r.record.Fence, r.record.Save = nil, func(context.Context) error { return nil }
}

// noteStartedUnread records the start of a reconcile whose object is not known.
func (r *run[T]) noteStartedUnread(ctx context.Context) {
	if r.journal != nil && !r.started {
		r.journal.Note(ctx, journal.Started{Causes: r.causes, Finalizer: r.engine.finalizers.own})
		r.started = true
	}
}

// noteStarted records the start of a reconcile.
func (r *run[T]) noteStarted(ctx context.Context) {
	if r.journal == nil || r.started {
		return
	}
	r.journal.Note(ctx, journal.Started{
		Causes: r.causes, Generation: r.read.GetGeneration(), ResourceVersion: r.read.GetResourceVersion(),
		Deleting: !r.read.GetDeletionTimestamp().IsZero(), Finalizer: r.engine.finalizers.own,
	})
	r.started = true
}

// endEarly ends a reconcile of which the queue and the memory need to know nothing but a time.
func (r *run[T]) endEarly(ctx context.Context, how journal.Result, after time.Duration) reconcile.Result {
	if r.journal != nil {
		r.noteStarted(ctx)
		switch {
		case how == journal.ResultWaiting && after > 0:
			r.journal.Note(ctx, journal.Requeued{After: after, Why: "hot loop"})
		case how == journal.ResultStale:
			r.journal.Note(ctx, journal.Requeued{After: after, Why: "poll"})
		}
		r.journal.Note(ctx, journal.Finished{Result: how, Duration: time.Since(r.began)})
	}
	if how != journal.ResultStale && how != journal.ResultWaiting {
		r.failures.forget()
	}
	return reconcile.Result{RequeueAfter: after}
}

// finish records how a reconcile ended, and returns what controller-runtime expects. If there is an
// error, the delay comes from the rate limiter, which knows it: the backoff, or the time that
// another step has requested if that is earlier.
func (r *run[T]) finish(ctx context.Context, how journal.Result, out outcome) (reconcile.Result, error) {
	if out.err != nil && out.failure.Class == "" {
		r.failures.classify(ctx, &out)
	}
	asked := out.err != nil && r.failures.atMost(&out, out.after)
	slow := r.detectHotLoop(ctx, out.err != nil)
	result := reconcile.Result{RequeueAfter: out.after}
	if slow > 0 {
		result.RequeueAfter = slow
	} else if over := r.memory.hot.UntilOver(r.now); over > 0 && (result.RequeueAfter == 0 || over < result.RequeueAfter) {
		result.RequeueAfter = over
	}
	r.noteUnwatched(ctx, how, out)
	if r.work != nil {
		r.reads.settle()
	}
	result.Priority = out.priority
	after := result.RequeueAfter
	if out.err != nil {
		after = out.delay
	}
	r.memory.timer.Set(r.now, after, out.err != nil && !asked)
	if r.journal != nil {
		r.noteEnd(ctx, how, out, result, asked)
	}
	failed := r.memory.failed
	r.memory.failed = out.err != nil
	switch {
	case out.err == nil && failed && len(out.waits) > 0: // it may fail again, and by turns
		return result, nil
	case out.err == nil:
		r.failures.forget()
		return result, nil
	case out.silent && out.failure.Class == failure.ClassConflict:
		// A conflict that the next reconcile resolves is not reported: controller-runtime would log
		// it, and count it among the errors.
		log.FromContext(ctx).V(1).Info("Requeuing after a conflict", "failure", out.err.Error(), "after", out.delay)
		return reconcile.Result{RequeueAfter: out.delay}, nil
	default:
		// Also if the error says that it is terminal, which is often not so: else controller-runtime
		// would drop it.
		return reconcile.Result{}, outcomes.HideTerminal(out.err)
	}
}

// noteEnd records the end of a reconcile. Asked says that a requested time comes before the
// backoff.
func (r *run[T]) noteEnd(ctx context.Context, how journal.Result, out outcome, result reconcile.Result, asked bool) {
	o := journal.Outcome{Err: out.err, Class: string(out.failure.Class), Remedy: out.failure.Remedy, RequeueAfter: result.RequeueAfter}
	for _, w := range out.waits {
		o.Waits = append(o.Waits, journal.Wait{For: w.For, Every: w.Every})
	}
	switch {
	case out.err != nil:
		why := "backoff"
		switch {
		case asked:
			why = "time"
		case out.failure.RetryAfter > 0:
			why = "throttled"
		}
		r.journal.Note(ctx, journal.Requeued{After: out.delay, Why: why, Failures: r.failures.count})
	case result.RequeueAfter > 0 && r.memory.hot.Until().After(r.now):
		r.journal.Note(ctx, journal.Requeued{After: result.RequeueAfter, Why: "hot loop"})
	case result.RequeueAfter > 0:
		r.journal.Note(ctx, journal.Requeued{After: result.RequeueAfter, Why: "time"})
	}
	finished := journal.Finished{Result: how, Outcome: o, Duration: time.Since(r.began)}
	if r.work != nil {
		finished.Stalled = r.conditions.stalledSince()
	}
	r.journal.Note(ctx, finished)
}

// detectHotLoop examines what the reconcile has written, and returns how long the next one has to
// wait. A hot loop is reported in the journal, with a Kubernetes event when it begins, and in the
// condition of the next reconcile.
func (r *run[T]) detectHotLoop(ctx context.Context, failed bool) (slow time.Duration) {
	if r.work == nil {
		return 0
	}
	r.memory.children.Expect(&r.record)
	detector := cmp.Or(r.memory.hot, new(hotloop.Detector))
	found, slow := detector.Observe(hotloop.Reconcile{
		Record: &r.record, Disputes: r.disputes, Self: r.self(), Owner: r.engine.options.Name,
		Generation: r.read.GetGeneration(), Policies: policy.Annotations(r.read), Version: r.read.GetResourceVersion(), Began: r.beganWith, Written: r.memory.written.version,
		Requested: r.memory.timer.Due(r.now), Failed: failed, Now: r.now,
	})
	r.memory.hot = detector.Keep()
	if found == nil {
		return 0
	}
	if r.journal != nil {
		r.journal.Note(ctx, journal.HotLoop{Reconciles: found.Count, Within: found.Within, Fields: found.Paths, Managers: found.Managers, Slowed: slow})
	}
	r.req.Logger.Info("Slowing down a hot loop", "fields", found.Paths, "object", found.Write.Object.String(), "managers", found.Managers, "slowed", slow)
	if found.First && r.engine.options.Recorder != nil {
		r.engine.options.Recorder.Eventf(r.req.Object, nil, corev1.EventTypeWarning, ReasonHotLoop, "Reconcile", "%s", r.memory.hot.Text())
	}
	return slow
}
