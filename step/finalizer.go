// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Reasons of the conditions that the engine computes.
const (
	// ReasonWaiting: something is missing that will come.
	ReasonWaiting = "Waiting"
	// ReasonCleaningUp: the object is being deleted, and its clean-up is not done.
	ReasonCleaningUp = "CleaningUp"
	// ReasonCleanedUp: the object is being deleted, its clean-up is done, and finalizers of others
	// keep it.
	ReasonCleanedUp = "CleanedUp"
	// ReasonDeleting: the object is being deleted, has nothing of ours to clean up, and finalizers
	// of others keep it.
	ReasonDeleting = "Deleting"
	// ReasonFinalizerRemoved: the object is being deleted, another client has taken our finalizer
	// off, and nothing is cleaned up.
	ReasonFinalizerRemoved = "FinalizerRemoved"
	// ReasonPredecessor: an object of the same name is gone, and its clean-up is not done.
	ReasonPredecessor = "PredecessorNotCleanedUp"
	// ReasonNoStatusSubresource: the definition of the kind has no status subresource, so that the
	// status can't be written.
	ReasonNoStatusSubresource = "NoStatusSubresource"
	// ReasonHotLoop: the object is reconciled again and again because of what is written to it, and
	// slowed down.
	ReasonHotLoop = "HotLoop"
)

// FinalizerRemovedAnnotation records on an object that another client has taken off a finalizer of
// its operators: its value are these finalizers, separated by commas. They are not put back, and
// the object is not cleaned up after, until the annotation is removed or the finalizer is there
// again.
const FinalizerRemovedAnnotation = "ctrlkit.dev/finalizer-removed"

// ensureFinalizer puts the finalizer on an object that needs it, before anything is done that it
// stands for. Where an admission policy has put it there (see package admission) it costs nothing.
// One that another client has taken off stays off.
func (r *run[T]) ensureFinalizer(ctx context.Context) outcome {
	e := r.engine
	switch {
	case e.finalizer == "":
		r.dropRetired()
		return outcome{passed: true}
	case slices.Contains(r.read.GetFinalizers(), e.finalizer):
		r.memory.setHeld(r.read.GetResourceVersion())
		r.noteRemoved(false)
		r.dropRetired()
		return outcome{passed: true}
	case !e.protects(r.read) && r.removedByHand():
		r.tellRemovedOnce("it is not put back, and nothing will be cleaned up when the object is deleted. To have it back, remove the annotation " + FinalizerRemovedAnnotation)
		r.noteRemoved(true)
		return outcome{passed: true}
	}
	// An action, because the conditions of the steps are their user's code, and may panic.
	return r.outcome(ctrlkit.NewAction("looking whether it has something to clean up", func(ctx context.Context) (ctrl.Result, error) {
		if !slices.ContainsFunc(e.plan.parts, func(p *part[T]) bool { return p.cleaner != nil && p.wanted(r.req) }) {
			return ctrlkit.NoRequeue()
		}
		return ctrlkit.RequeueIfError(r.putFinalizer(ctx))
	}).Run(ctx))
}

// putFinalizer puts the finalizer on the object, if it is not there, and takes retired ones off.
// What steps have changed meanwhile stays to be saved.
func (r *run[T]) putFinalizer(ctx context.Context) error {
	e := r.engine
	r.saving.Lock()
	defer r.saving.Unlock()
	if slices.Contains(r.base().GetFinalizers(), e.finalizer) || r.memory.isReleased() {
		return nil
	}
	// Remembered before it is written: if the answer is lost, or the object goes at the same
	// instant, the clean-up is owed.
	r.memory.setFinalized()
	protected := r.base().DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	protected.SetFinalizers(e.withFinalizer(protected.GetFinalizers()))
	if err := r.write(ctx, partMetadata, protected, map[string]any{"finalizers": protected.GetFinalizers()}); err != nil {
		return fmt.Errorf("putting finalizer %q on the object: %w", e.finalizer, err)
	}
	r.req.Object.SetFinalizers(e.withFinalizer(r.req.Object.GetFinalizers()))
	r.memory.setHeld(r.base().GetResourceVersion())
	if r.rebased {
		// What comes now must not follow from an old version: the object may be another by now, or
		// be about to be deleted.
		return r.awaitNewest()
	}
	return nil
}

// withFinalizer returns finalizers with ours and without retired ones.
func (e *Engine[T]) withFinalizer(finalizers []string) []string {
	kept := slices.DeleteFunc(slices.Clone(finalizers), e.retired)
	if !slices.Contains(kept, e.finalizer) {
		kept = append(kept, e.finalizer)
	}
	return kept
}

// dropRetired takes retired finalizers off, to be saved at the end of the reconcile.
func (r *run[T]) dropRetired() {
	if slices.ContainsFunc(r.req.Object.GetFinalizers(), r.engine.retired) {
		r.req.Object.SetFinalizers(slices.DeleteFunc(slices.Clone(r.req.Object.GetFinalizers()), r.engine.retired))
	}
}

// removedByHand reports whether another client has taken our finalizer off an object that is not
// being deleted: it was seen there before, or the object says so.
func (r *run[T]) removedByHand() bool {
	annotated := slices.Contains(removedFinalizers(r.read), r.engine.finalizer)
	m := r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case annotated:
		m.release()
		m.noted = true
		return true
	case m.released && m.noted: // the annotation was removed: it is wanted back
		m.released, m.noted = false, false
		return false
	case m.released: // the annotation was not written yet
		return true
	}
	return m.held != "" && !older(r.read.GetResourceVersion(), m.held)
}

// removedFinalizers are those that were taken off, as the object says.
func removedFinalizers(obj client.Object) []string {
	value := obj.GetAnnotations()[FinalizerRemovedAnnotation]
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// noteRemoved has the object say that our finalizer was taken off, or that it was not.
func (r *run[T]) noteRemoved(removed bool) {
	own, all := r.engine.finalizer, removedFinalizers(r.read)
	if slices.Contains(all, own) == removed {
		return
	}
	all = slices.DeleteFunc(all, func(f string) bool { return f == own })
	if removed {
		all = append(all, own)
	}
	annotations := maps.Clone(r.req.Object.GetAnnotations())
	if annotations == nil {
		annotations = make(map[string]string)
	}
	annotations[FinalizerRemovedAnnotation] = strings.Join(all, ",")
	if len(all) == 0 {
		delete(annotations, FinalizerRemovedAnnotation)
	}
	r.req.Object.SetAnnotations(annotations)
}

// tellRemovedOnce records that another client has taken our finalizer off, unless that is known.
func (r *run[T]) tellRemovedOnce(consequence string) {
	if r.memory.setReleased() {
		r.engine.tellRemoved(r.logger, r.read, consequence)
	}
}

// tellRemoved records it in the log and with an event.
func (e *Engine[T]) tellRemoved(logger logr.Logger, obj client.Object, consequence string) {
	text := fmt.Sprintf("another client has removed finalizer %q: %s", e.finalizer, consequence)
	logger.Info("A finalizer was removed", "finalizer", e.finalizer, "uid", obj.GetUID(), "consequence", consequence)
	if e.options.Recorder != nil {
		e.options.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, ReasonFinalizerRemoved, "Reconcile", "%s", text)
	}
}

// delete cleans up after an object that is being deleted, and lets it go.
func (r *run[T]) delete(ctx context.Context) (reconcile.Result, error) {
	e := r.engine
	ctx = context.WithValue(ctx, requestKey{}, r.req)
	if !e.protects(r.read) {
		return r.bystand(ctx)
	}
	r.memory.setHeld(r.read.GetResourceVersion())
	out := r.stillProtected(ctx)
	switch {
	case out.passed:
		out = r.outcome(e.plan.cleanup.Run(ctx))
	case out.err == nil:
		return r.endEarly(ctx, journal.ResultStale, lookAgainBehind), nil
	}
	done := out.passed
	if done {
		out.after = 0 // nothing is left to look at again
	}
	out = r.adopt(r.post(ctx, out))
	if !done {
		r.judge(ctx, &out)
		r.summarize(ctx, &out, ReasonCleaningUp)
		out = r.save(ctx, out)
		if out.err != nil {
			return r.finish(ctx, journal.ResultFailed, out)
		}
		return r.finish(ctx, journal.ResultWaiting, out)
	}
	r.judge(ctx, &out) // a Post may have failed, which does not keep the object
	r.memory.setCleaned()
	others := slices.DeleteFunc(slices.Clone(r.req.Object.GetFinalizers()), func(f string) bool { return f == e.finalizer || e.retired(f) })
	r.req.Object.SetFinalizers(others)
	if len(others) > 0 {
		r.summarize(ctx, &out, ReasonCleanedUp)
	} else {
		r.keepStatus()
	}
	out = r.save(ctx, out)
	if out.err != nil {
		return r.finish(ctx, journal.ResultFailed, out)
	}
	r.memory.left = len(others) == 0 && r.saved.metadata
	return r.finish(ctx, journal.ResultDeleted, out)
}

// stillProtected returns an outcome that has passed if the object still has our finalizer, past the
// cache: a clean-up can't be undone, and who has just taken the finalizer off does not want it.
// Without Options.APIReader the cache is believed.
func (r *run[T]) stillProtected(ctx context.Context) outcome {
	if r.engine.options.APIReader == nil {
		return outcome{passed: true}
	}
	obj, err := r.metadata(ctx)
	switch {
	case err == nil && obj.UID == r.read.GetUID() && r.engine.protects(obj):
		return outcome{passed: true}
	case err != nil && !apierrors.IsNotFound(err):
		return outcome{err: fmt.Errorf("asking whether the object still has its finalizer: %w", err)}
	}
	return outcome{} // the cache is behind
}

// bystand is the end of a reconcile of an object that is being deleted and does not have our
// finalizer: because it was cleaned up, because it never had one, or because another client has
// taken it off. Nothing is cleaned up. What keeps the object belongs to others.
func (r *run[T]) bystand(ctx context.Context) (reconcile.Result, error) {
	reason := ReasonDeleting
	switch {
	case r.engine.finalizer == "":
		r.dropRetired()
	case r.memory.isCleaned() || r.says(ReasonCleanedUp):
		reason = ReasonCleanedUp
	case r.memory.wasFinalized() || r.says(ReasonFinalizerRemoved) || slices.Contains(removedFinalizers(r.read), r.engine.finalizer):
		reason = ReasonFinalizerRemoved
		if !r.says(ReasonFinalizerRemoved) {
			r.tellRemovedOnce("the object is being deleted, and nothing is cleaned up")
		}
	}
	out := r.adopt(r.post(ctx, outcome{passed: true}))
	r.judge(ctx, &out)
	if len(r.req.Object.GetFinalizers()) > 0 {
		r.summarize(ctx, &out, reason)
	} else {
		r.keepStatus()
	}
	if out = r.save(ctx, out); out.err != nil {
		return r.finish(ctx, journal.ResultFailed, out)
	}
	return r.finish(ctx, journal.ResultDeleted, out)
}

// says reports whether the object says why it is kept, by this process or one before it.
func (r *run[T]) says(reason string) bool {
	if r.req.Conditions == nil {
		return false
	}
	c, ok := r.req.Conditions.Get(condition.Ready)
	return ok && c.Reason == reason
}

// gone does what is owed to objects of this name that went without our clean-up, and forgets them.
func (r *run[T]) gone(ctx context.Context) (reconcile.Result, error) {
	r.startedBlind(ctx)
	if out := r.cleanUpLost(ctx); out.err != nil || out.after > 0 {
		return r.finishLost(ctx, out)
	}
	if wait := r.awaitLost(ctx); wait > 0 {
		return r.finish(ctx, journal.ResultWaiting, outcome{after: wait})
	}
	r.engine.memories.forget(r.key())
	r.engine.limiter.Forget(r.request)
	if r.journal != nil {
		r.journal.Note(ctx, journal.Finished{Result: journal.ResultGone, Duration: time.Since(r.began)})
	}
	return reconcile.Result{}, nil
}

// awaitLost returns how long to wait for the event that tells the last state of an object that is
// owed its clean-up: the cache lets it go before the watch tells. Zero means that nothing is to be
// waited for.
func (r *run[T]) awaitLost(ctx context.Context) time.Duration {
	m := r.memory
	m.mu.Lock()
	owed := m.finalized && !m.cleaned
	if owed && m.dropped == m.uid {
		owed = false // it was done from the last state
	}
	m.mu.Unlock()
	switch {
	case !owed:
		return 0
	case m.missed.IsZero():
		m.missed = r.now
	case r.now.Sub(m.missed) > longestBehind:
		log.FromContext(ctx).Error(nil, "An object went without its clean-up, and its last state is not known: is the controller made by Engine.Complete?", "uid", m.uid)
		return 0
	}
	return lookAgainBehind
}

// blockSuccessor ends a reconcile in which a clean-up that is owed to an object that is gone did
// not pass. An object that has its name now has to wait, because what is outside of the cluster may
// have the same name, too. It says so.
func (r *run[T]) blockSuccessor(ctx context.Context, out outcome) (reconcile.Result, error) {
	last, _ := r.memory.firstLost()
	obj := r.engine.newObject()
	if err := r.engine.options.Client.Get(ctx, r.key(), obj, sharing...); err != nil || obj.GetUID() == last.GetUID() {
		return r.finishLost(ctx, out) // there is none, or it is not known: the next look tells
	}
	if reason, _ := pause(obj); reason != "" || !obj.GetDeletionTimestamp().IsZero() {
		return r.finishLost(ctx, out)
	}
	r.read = obj
	r.memory.startFor(obj)
	r.prepare(ctx)
	r.judge(ctx, &out)
	if set := r.req.Conditions; set != nil {
		why, severity := "it waits for "+textOf(out.waits), condition.SeverityWarning
		switch {
		case out.err != nil:
			why, severity = out.err.Error(), max(severity, out.verdict.Severity)
		case len(out.waits) == 0:
			why = "it continues soon"
		}
		set.MarkFailed(severity, ReasonPredecessor, fmt.Sprintf("an object of this name with UID %s was deleted, and its clean-up is not done: %s", last.GetUID(), why))
		r.summarize(ctx, &out, "")
		out = r.save(ctx, out)
	}
	return r.finishLost(ctx, out)
}

// finishLost ends a reconcile in which a clean-up that is owed did not pass.
func (r *run[T]) finishLost(ctx context.Context, out outcome) (reconcile.Result, error) {
	if out.err != nil {
		return r.finish(ctx, journal.ResultFailed, out)
	}
	return r.finish(ctx, journal.ResultWaiting, out)
}

// lookAgainLost is when a clean-up that waits, of an object that does not exist any more, is tried
// again: no event may come.
const lookAgainLost = 30 * time.Second

// cleanUpLost runs the clean-up from the last known state of objects of this name that the API
// server has let go although they had our finalizer, or should have had: a finalizer that is added
// while the object is being deleted may be lost with it.
func (r *run[T]) cleanUpLost(ctx context.Context) outcome {
	for {
		last, ok := r.memory.firstLost()
		if !ok {
			return outcome{}
		}
		log.FromContext(ctx).Info("Cleaning up after an object that went without its finalizer", "uid", last.GetUID())
		lost := &run[T]{engine: r.engine, request: r.request, memory: r.memory, journal: r.journal, now: r.now, began: r.began, read: last}
		lost.prepare(ctx)
		lost.req.Conditions, lost.core.fence = nil, nil // it is gone: nobody reads them, and no version is newer
		lost.req.save, lost.core.save = nil, func(context.Context) error { return nil }
		out := lost.outcome(r.engine.plan.cleanup.Run(context.WithValue(ctx, requestKey{}, lost.req)))
		if !out.passed {
			if out.after == 0 {
				out.after = lookAgainLost
			}
			return out
		}
		r.memory.dropLost()
	}
}

// setFinalized and its kin are called by reconciles, and read when an event tells that an object is
// gone.
func (m *memory[T]) setFinalized() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finalized = true
}

// setHeld notes that the object had our finalizer in a version.
func (m *memory[T]) setHeld(version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finalized, m.held, m.released = true, version, false
}

// setReleased notes that another client has taken our finalizer off, and reports whether that is
// new.
func (m *memory[T]) setReleased() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := !m.released
	m.release()
	return first
}

func (m *memory[T]) isReleased() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.released
}

// wasFinalized reports whether the object had our finalizer, as far as this process knows.
func (m *memory[T]) wasFinalized() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held != "" || m.released
}

func (m *memory[T]) setCleaned() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleaned = true
}

func (m *memory[T]) isCleaned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cleaned
}

// deleted is called for each object that is gone, with its last state. Final says that it is the
// state in which the object was deleted.
func (e *Engine[T]) deleted(obj client.Object, final bool) {
	typed, ok := obj.(T)
	if !ok || e.finalizer == "" {
		return
	}
	if e.memories.lose(typed, final, e.protects) {
		e.tellRemoved(log.Log.WithName(e.options.Name).WithValues("object", client.ObjectKeyFromObject(obj)), obj, "the object is gone, and nothing is cleaned up")
	}
}

// summarize computes the conditions from what the steps have set and from how they ended. A
// deletion has a reason.
func (r *run[T]) summarize(_ context.Context, out *outcome, deletion string) {
	set := r.req.Conditions
	if out.silent {
		return
	}
	if set == nil {
		r.engine.status.observe(r.req.Object)
		return
	}
	switch {
	case deletion == ReasonCleanedUp || deletion == ReasonFinalizerRemoved || deletion == ReasonDeleting:
		set.Calm() // what a step has found bad must not hide this: after a restart the engine reads it
		set.MarkFailed(condition.SeverityInfo, deletion, r.kept(deletion))
	case out.err != nil && set.Worst() < out.verdict.Severity:
		set.MarkFailed(out.verdict.Severity, out.verdict.Reason, during(deletion, out.err.Error()))
	case len(out.waits) > 0 && (set.Worst() == 0 || deletion != ""):
		set.MarkFailed(condition.SeverityInfo, orElse(deletion, ReasonWaiting), during(deletion, "waits for "+textOf(out.waits)))
	case deletion != "" && set.Worst() == 0:
		set.MarkFailed(condition.SeverityInfo, deletion, during(deletion, "it goes on soon"))
	case out.after > 0 && !r.allRan() && set.Worst() == 0:
		set.MarkFailed(condition.SeverityInfo, ReasonWaiting, "a step wants to be run again before the steps after it")
	}
	if text := r.memory.hot.text; text != "" { // until it is calm
		set.MarkFailed(condition.SeverityWarning, ReasonHotLoop, text)
	}
	if deletion == "" {
		r.settle(out)
	}
	set.Summarize()
	r.holdStill(out)
	if err := set.Store(r.req.Object); err != nil {
		out.err = failure.Mark(err, failure.WithClass(failure.ClassTerminal)) // New has looked: it can't be
	}
	r.engine.status.observe(r.req.Object)
}

// kept says why an object that is being deleted is still there, if not because of us.
func (r *run[T]) kept(reason string) string {
	text := "it is being deleted"
	switch reason {
	case ReasonCleanedUp:
		text += ", our clean-up is done"
	case ReasonFinalizerRemoved:
		text += fmt.Sprintf(", another client has removed our finalizer %q, so nothing is cleaned up", r.engine.finalizer)
	}
	text += ", and it is kept by finalizer " + quoted(r.req.Object.GetFinalizers()) + ", which another controller has to remove"
	if own := r.engine.kind.Group + "/" + r.engine.options.Name; r.engine.finalizer != own && slices.Contains(r.req.Object.GetFinalizers(), own) {
		text += fmt.Sprintf(". If an older version of this operator has put %q there, add it to Options.RetiredFinalizers", own)
	}
	return text
}

func (r *run[T]) allRan() bool { return !slices.Contains(r.req.ran, false) }

func during(deletion, text string) string {
	if deletion == "" {
		return text
	}
	return "cleaning up: " + text
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func quoted(names []string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(texts, ", ")
}
