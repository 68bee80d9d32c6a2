// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// conditions computes the conditions of an object from what its steps have set and from how they
// ended. A type without conditions has none.
type conditions[T client.Object] struct {
	engine *Engine[T]
	req    *Request[T]
	memory *memory[T]
	// newTexts is true once this reconcile writes texts of failures that differ from those before.
	newTexts bool
}

// adopt takes over conditions that a step has set on the object itself instead of on
// Request.Conditions.
func (c *conditions[T]) adopt(out outcome) outcome {
	if c.req.Conditions == nil {
		return out
	}
	if err := c.req.Conditions.MergeFromObject(c.req.Object); err != nil {
		err = failure.Mark(fmt.Errorf("%w: %w", ErrReadOnlyField, err), failure.WithClass(failure.ClassTerminal))
		out = out.join(outcome{err: err})
	}
	return out
}

// summarize computes the conditions and stores them in the object. Deletion is the reason of an
// object that is being deleted.
func (c *conditions[T]) summarize(out *outcome, deletion string) {
	set := c.req.Conditions
	if out.silent {
		return
	}
	if set == nil {
		if !c.engine.options.Partial {
			c.engine.resource.status.observe(c.req.Object)
		}
		return
	}
	if c.engine.options.Partial {
		c.summarizePartial(out, deletion)
		return
	}
	c.markOutcome(out, deletion)
	if hot := c.memory.hot.Text(); hot != "" {
		set.MarkFailed(condition.SeverityWarning, ReasonHotLoop, hot)
	}
	if deletion == "" {
		c.settle(out)
	}
	set.Summarize()
	c.limitTexts(out)
	if err := set.Store(c.req.Object); err != nil {
		out.err = failure.Mark(err, failure.WithClass(failure.ClassTerminal)) // impossible: New has checked the type
	}
	c.engine.resource.status.observe(c.req.Object)
}

// limitTexts holds the messages of a failure that are too new. A failure that is tried again much later is
// tried earlier then, or its condition would say for an hour what is not true any more: which object
// is in the way.
func (c *conditions[T]) limitTexts(out *outcome) {
	limit := cmp.Or(c.memory.texts, new(textLimit))
	c.newTexts = limit.apply(c.req.Conditions, out, c.newTexts, c.req.Now)
	if c.memory.texts = limit; *limit == (textLimit{}) {
		c.memory.texts = nil
	}
	if limit.held && out.delay > textsApart {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c.req.Object)}
		out.delay = c.engine.limiter.AtMost(request, textsApart)
	}
}

// summarizePartial stores the declared conditions, and nothing that other engines of the kind
// compute, too.
func (c *conditions[T]) summarizePartial(out *outcome, deletion string) {
	if len(c.engine.plan.declared) == 0 {
		return
	}
	set := c.req.Conditions
	if deletion == "" {
		c.settle(out)
	}
	c.limitTexts(out)
	if err := set.Store(c.req.Object); err != nil {
		out.err = failure.Mark(err, failure.WithClass(failure.ClassTerminal)) // impossible: New has checked the type
	}
}

// markOutcome marks what has failed, or what the object waits for.
func (c *conditions[T]) markOutcome(out *outcome, deletion string) {
	set := c.req.Conditions
	switch {
	case deletion == reasonCleanedUp || deletion == reasonFinalizerRemoved || deletion == reasonDeleting:
		set.DowngradeToInfo() // what a step has found unhealthy must not hide this: after a restart the engine reads it
		set.MarkFailed(condition.SeverityInfo, deletion, c.kept(deletion))
	case out.err != nil && set.WorstSeverity() < out.failure.Severity:
		set.MarkFailed(out.failure.Severity, out.failure.Reason, during(deletion, out.err.Error()))
	case len(out.waits) > 0 && (set.WorstSeverity() == 0 || deletion != ""):
		set.MarkFailed(condition.SeverityInfo, cmp.Or(deletion, ReasonWaiting), during(deletion, "waits for "+textOf(out.waits)))
	case deletion != "" && set.WorstSeverity() == 0:
		set.MarkFailed(condition.SeverityInfo, deletion, during(deletion, "the cleanup continues"))
	case out.after > 0 && !c.req.allRan() && set.WorstSeverity() == 0:
		set.MarkFailed(condition.SeverityInfo, ReasonWaiting, "a step wants to be run again before the steps after it")
	}
}

// kept says why an object that is being deleted is still there, if not because of us.
func (c *conditions[T]) kept(reason string) string {
	e, finalizers := c.engine, c.req.Object.GetFinalizers()
	text := "it is being deleted"
	switch reason {
	case reasonCleanedUp:
		text += ", our cleanup is done"
	case reasonFinalizerRemoved:
		text += fmt.Sprintf(", another client has removed our finalizer %q, so nothing is cleaned up", e.finalizers.own)
	}
	text += ", and it is kept by finalizer " + track.Quote(finalizers) + ", which another controller has to remove"
	if remedy := c.req.RetiredRemedy(finalizers); remedy != "" {
		text += "; " + remedy
	}
	return text
}

func during(deletion, text string) string {
	if deletion == "" {
		return text
	}
	return "cleaning up: " + text
}

// textOf says what is waited for, without the name of the step.
func textOf(waits []ctrlkit.Waiting) string {
	texts := make([]string, 0, len(waits))
	seen := make(map[string]bool, len(waits))
	for _, w := range waits {
		if !seen[w.For] {
			seen[w.For] = true
			texts = append(texts, w.For)
		}
	}
	return strings.Join(texts, "; ")
}

// result returns what a reconcile of which the object was saved has come to. The journal, and what
// shows it, repeat that.
func (c *conditions[T]) result(out outcome) journal.Result {
	switch {
	case out.err != nil:
		return journal.ResultFailed
	case c.req.Conditions != nil && c.req.Conditions.WorstSeverity() == condition.SeverityError:
		return journal.ResultStalled
	case len(out.waits) > 0:
		return journal.ResultWaiting
	default:
		return journal.ResultDone
	}
}

// stalledSince returns since when the object is Stalled, zero if it is not.
func (c *conditions[T]) stalledSince() time.Time {
	if c.req.Conditions != nil && !c.engine.options.Partial {
		if stalled, ok := c.req.Conditions.Get(condition.Stalled); ok && stalled.Status == metav1.ConditionTrue {
			return stalled.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// settle decides about the declared conditions that no step has set in this reconcile, by how
// their step ended:
//
//   - It failed: what was healthy is unknown until it passes.
//   - It waits, or was not reached: they stay as they were, and about the generation that they
//     were about.
//   - It passed: they are about the present generation.
func (c *conditions[T]) settle(out *outcome) {
	set := c.req.Conditions
	var unsure []string
	for _, p := range c.engine.plan.parts {
		if len(p.Conditions) == 0 || !c.req.ran[p.index] {
			continue
		}
		types, ended := typesOf(p.Conditions), c.req.errs[p.index]
		_, err := ctrlkit.IgnoreExit(ctrl.Result{}, ended)
		switch {
		case err != nil:
			set.MarkLastTryFailed(types, err.Error())
		case len(ctrlkit.Waits(ended)) > 0:
			unsure = append(unsure, types...)
		default:
			set.MarkLastTryPassed(types)
		}
	}
	if out.err == nil && c.req.allRan() {
		set.MarkObserved(unsure...)
	}
}

func typesOf(declared []condition.Declaration) []string {
	types := make([]string, len(declared))
	for i, d := range declared {
		types[i] = d.Type
	}
	return types
}

// says reports whether the object already has a reason why it is kept, from this process or one
// before it.
func (c *conditions[T]) says(reason string) bool {
	if c.req.Conditions == nil {
		return false
	}
	ready, ok := c.req.Conditions.Get(condition.Ready)
	return ok && ready.Reason == reason
}

// announce records in the journal which conditions have changed, after they were written, and one
// Kubernetes event for each reason for which some have become unhealthy. Two of one reason would be
// a series, which shows the text of one, and whose second request may overtake the first.
func (c *conditions[T]) announce(ctx context.Context, obj T) {
	recorder, set := c.engine.options.Recorder, c.req.Conditions
	if set == nil {
		return
	}
	var reasons []string
	texts := make(map[string]string)
	for _, changed := range set.Changes() {
		c.req.journal.Note(ctx, journal.ConditionChanged{Type: changed.Type, Status: string(changed.Status), Reason: changed.Reason})
		if recorder == nil {
			continue
		}
		// Ready repeats what a declared condition says, which has an event of its own.
		repeated := changed.Type == condition.Ready && slices.ContainsFunc(set.Conditions(), func(o metav1.Condition) bool {
			return set.Declared(o.Type) && o.Reason == changed.Reason && strings.HasPrefix(changed.Message, o.Type+": ")
		})
		if changed.Severity < condition.SeverityWarning || repeated {
			continue
		}
		said, twice := texts[changed.Reason]
		switch {
		case !twice:
			reasons = append(reasons, changed.Reason)
			said = changed.Message
		case strings.Contains(changed.Message, said):
			said = changed.Message
		case !strings.Contains(said, changed.Message):
			said += "; " + changed.Message
		}
		texts[changed.Reason] = said
	}
	for _, reason := range reasons {
		recorder.Eventf(obj, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", texts[reason])
	}
}

// announceUnsaved records an event about what a person has to repair and no condition says, because
// the status could not be written.
func (c *conditions[T]) announceUnsaved(out outcome) {
	if recorder := c.engine.options.Recorder; recorder != nil && !out.silent && out.failure.Severity == condition.SeverityError {
		recorder.Eventf(c.req.Snapshot(), nil, corev1.EventTypeWarning, out.failure.Reason, "Reconcile", "%s", out.err.Error())
	}
}

// A textLimit keeps a failure whose text changes at each try from causing a write at each try.
type textLimit struct {
	texts   time.Time // when the text of a failure was last written
	burst   int       // how many texts were written since, each less than textsApart after the one before
	numbers time.Time // since when a text is held that differs in numbers only; zero if none is
	held    bool      // the last reconcile has held a text
}

// textsApart is how often the text of a failure may change in a condition while nothing else does,
// and how long a text may be held that differs in numbers only.
const textsApart = 10 * time.Minute

// mostTexts is how many texts of failures that can't be retried may follow each other at once. A
// person who clears one failure sees the next one: of three objects that are in the way, the two
// that remain. Such a failure is retried so rarely that its text causes no hot loop.
const mostTexts = 5

// apply holds the messages of a set that are too new. Writes says that this reconcile has computed
// new texts before, which stay; apply reports whether it has now.
func (l *textLimit) apply(set *condition.Set, out *outcome, writes bool, now time.Time) bool {
	l.held = false
	if out.err == nil || !set.MessagesChanged() {
		l.numbers = time.Time{}
		return writes
	}
	if !writes && (l.numbers.IsZero() || now.Sub(l.numbers) < textsApart) {
		if set.KeepSimilarMessages() && l.numbers.IsZero() {
			l.numbers = now
		}
		if !set.MessagesChanged() {
			l.held = true
			return false
		}
	}
	if now.Sub(l.texts) >= textsApart {
		l.burst = 0
	}
	more := out.failure.Class == failure.ClassTerminal && l.burst < mostTexts
	if !writes && now.Sub(l.texts) < textsApart && !more {
		l.held = set.KeepMessages()
		return false
	}
	l.texts, l.numbers, l.burst = now, time.Time{}, l.burst+1
	return true
}
