package step

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	// ReasonCleanedUp: the object is being deleted, its clean-up is done, and finalizers of others keep it.
	ReasonCleanedUp = "CleanedUp"
	// ReasonHotLoop: the object is reconciled again and again because of what is written to it, and slowed down.
	ReasonHotLoop = "HotLoop"
)

// ensureFinalizer puts the finalizer on an object that needs it, before anything is done that it stands for. Where an admission policy has put it there
// (see [FinalizerPolicy]) it costs nothing.
func (r *run[T]) ensureFinalizer(ctx context.Context) outcome {
	e := r.engine
	if e.finalizer == "" {
		return outcome{}
	}
	if slices.Contains(r.read.GetFinalizers(), e.finalizer) {
		r.memory.setFinalized()
		return outcome{}
	}
	// An action, because the conditions of the steps are their user's code, and may panic.
	return r.outcome(ctrlkit.NewAction("looking whether it has something to clean up", func(ctx context.Context) (ctrl.Result, error) {
		if !slices.ContainsFunc(e.plan.parts, func(p *part[T]) bool { return p.cleaner != nil && p.wanted(r.req) }) {
			return ctrlkit.NoRequeue()
		}
		return ctrlkit.RequeueIfError(r.putFinalizer(ctx))
	}).Run(ctx))
}

// putFinalizer puts the finalizer on the object, if it is not there. What steps have changed meanwhile stays to be saved.
func (r *run[T]) putFinalizer(ctx context.Context) error {
	e := r.engine
	finalizers := r.base().GetFinalizers()
	if slices.Contains(finalizers, e.finalizer) {
		return nil
	}
	finalizers = append(slices.Clone(finalizers), e.finalizer)
	// Remembered before it is written: if the answer is lost, or the object goes at the same instant, the clean-up is owed.
	r.memory.setFinalized()
	if err := r.patchMetadata(ctx, map[string]any{"finalizers": finalizers}); err != nil {
		return fmt.Errorf("putting finalizer %q on the object: %w", e.finalizer, err)
	}
	if own := r.req.Object.GetFinalizers(); !slices.Contains(own, e.finalizer) {
		r.req.Object.SetFinalizers(append(slices.Clone(own), e.finalizer))
	}
	r.rebase(finalizers)
	return nil
}

// delete cleans up after an object that is being deleted, and lets it go.
func (r *run[T]) delete(ctx context.Context) (reconcile.Result, error) {
	e := r.engine
	ours := e.finalizer != "" && slices.Contains(r.read.GetFinalizers(), e.finalizer)
	if ours {
		r.memory.setFinalized()
	}
	var out outcome
	ctx = context.WithValue(ctx, requestKey{}, r.req)
	if ours || e.finalizer != "" && !r.memory.isCleaned() && !r.saysCleaned() {
		out = r.outcome(e.plan.cleanup.Run(ctx))
	}
	done := out.err == nil && len(out.waits) == 0 && out.after == 0
	out = r.post(ctx, out)
	if !done {
		r.judge(ctx, &out)
		r.summarise(ctx, &out, ReasonCleaningUp)
		out = r.save(ctx, out)
		if out.err != nil {
			return r.finish(ctx, journal.Failed, out)
		}
		return r.finish(ctx, journal.Waiting, out)
	}
	r.judge(ctx, &out) // a Post may have failed, which does not keep the object
	r.memory.setCleaned()
	others := slices.DeleteFunc(slices.Clone(r.req.Object.GetFinalizers()), func(f string) bool { return f == e.finalizer })
	r.req.Object.SetFinalizers(others)
	if len(others) > 0 {
		r.summarise(ctx, &out, ReasonCleanedUp)
	} else if ours {
		r.keepStatus()
	}
	out = r.save(ctx, out)
	if out.err != nil {
		return r.finish(ctx, journal.Failed, out)
	}
	r.memory.left = len(others) == 0 && r.saved.metadata
	return r.finish(ctx, journal.Deleted, out)
}

// saysCleaned says whether the object says that its clean-up was done, by this process or one before it.
func (r *run[T]) saysCleaned() bool {
	if r.req.Conditions == nil {
		return false
	}
	c, ok := r.req.Conditions.Get(condition.Ready)
	return ok && c.Reason == ReasonCleanedUp
}

// gone does what is owed to objects of this name that went without our clean-up, and forgets them.
func (r *run[T]) gone(ctx context.Context) (reconcile.Result, error) {
	r.startedBlind(ctx)
	if out := r.cleanUpLost(ctx); out.err != nil || out.after > 0 {
		return r.finishLost(ctx, out)
	}
	if wait := r.awaitLost(ctx); wait > 0 {
		return r.finish(ctx, journal.Waiting, outcome{after: wait})
	}
	r.engine.memories.forget(r.key())
	r.engine.limiter.Forget(r.request)
	if r.journal != nil {
		r.journal.Note(ctx, journal.Finished{Result: journal.Gone, Duration: time.Since(r.began)})
	}
	return reconcile.Result{}, nil
}

// awaitLost returns how long to wait for the event that tells the last state of an object that is owed its clean-up: the cache lets it go before
// the watch tells. Zero means that nothing is to be waited for.
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

// finishLost ends a reconcile in which a clean-up that is owed did not pass.
func (r *run[T]) finishLost(ctx context.Context, out outcome) (reconcile.Result, error) {
	if out.err != nil {
		return r.finish(ctx, journal.Failed, out)
	}
	return r.finish(ctx, journal.Waiting, out)
}

// lookAgainLost is when a clean-up that waits, of an object that does not exist any more, is tried again: no event may come.
const lookAgainLost = 30 * time.Second

// cleanUpLost runs the clean-up from the last known state of objects of this name that the API server has let go although they had our
// finalizer, or should have had: a finalizer that is added while the object is being deleted may be lost with it.
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
		out := lost.outcome(r.engine.plan.cleanup.Run(context.WithValue(ctx, requestKey{}, lost.req)))
		if out.err != nil || len(out.waits) > 0 || out.after > 0 {
			if out.after == 0 {
				out.after = lookAgainLost
			}
			return out
		}
		r.memory.dropLost()
	}
}

// setFinalized and its kin are called by reconciles, and read when an event tells that an object is gone.
func (m *memory[T]) setFinalized() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finalized = true
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

// owed says whether the clean-up of an object that is gone was not done.
func (m *memory[T]) owed(obj T, finalizer string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uid != obj.GetUID() { // never reconciled: then only what it had counts
		return slices.Contains(obj.GetFinalizers(), finalizer)
	}
	return !m.cleaned && (m.finalized || slices.Contains(obj.GetFinalizers(), finalizer))
}

// deleted is told of every object that is gone, with its last state.
func (e *Engine[T]) deleted(obj client.Object) {
	typed, ok := obj.(T)
	if !ok || e.finalizer == "" {
		return
	}
	e.memories.lose(typed, e.finalizer)
}

// summarise computes the conditions from what the steps have set and from how they ended. A deletion has a reason.
func (r *run[T]) summarise(_ context.Context, out *outcome, deletion string) {
	set := r.req.Conditions
	if out.silent {
		return
	}
	if set == nil {
		r.engine.status.observe(r.req.Object)
		return
	}
	switch {
	case deletion == ReasonCleanedUp:
		set.Calm() // what a step has found bad must not hide this: after a restart the engine reads it
		set.Failed(condition.Info, ReasonCleanedUp, "it is being deleted, our clean-up is done, and it is kept by finalizer "+
			quoted(r.req.Object.GetFinalizers())+", which somebody else has to take off")
	case out.err != nil && set.Worst() < out.verdict.Severity:
		set.Failed(out.verdict.Severity, out.verdict.Reason, during(deletion, out.err.Error()))
	case len(out.waits) > 0 && (set.Worst() == 0 || deletion != ""):
		set.Failed(condition.Info, orElse(deletion, ReasonWaiting), during(deletion, "waits for "+textOf(out.waits)))
	case deletion != "" && set.Worst() == 0:
		set.Failed(condition.Info, deletion, during(deletion, "it goes on soon"))
	case out.after > 0 && !r.allRan() && set.Worst() == 0:
		set.Failed(condition.Info, ReasonWaiting, "a step wants to be run again before the steps after it")
	}
	if text := r.memory.hot.text; text != "" { // until it is calm
		set.Failed(condition.Warning, ReasonHotLoop, text)
	}
	if deletion == "" {
		r.settle(out)
	}
	set.Summarise()
	r.holdStill(out)
	if err := set.Store(r.req.Object); err != nil {
		out.err = failure.As(err, failure.OfClass(failure.Terminal)) // New has looked: it can't be
	}
	r.engine.status.observe(r.req.Object)
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

// writeFailed makes the error of a write to our own object: if it is gone, the newest version says so, as with a conflict.
func writeFailed(doing string, err error) error {
	if apierrors.IsNotFound(err) {
		return failure.As(fmt.Errorf("%s: %w (is it gone, or does its definition lack the status subresource?)", doing, err), failure.OfClass(failure.Conflict))
	}
	return fmt.Errorf("%s: %w", doing, err)
}
