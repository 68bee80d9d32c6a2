// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
)

// settle decides about the declared conditions that no step has set in this reconcile. Those of a
// step that has failed are not known any more if they were good, until it passes. Those of a step
// that waits, or was not reached, stay as they were, and about the generation that they were about.
// Those of a step that has passed are about the present one.
func (r *run[T]) settle(out *outcome) {
	set := r.req.Conditions
	var unsure []string
	for _, p := range r.engine.plan.parts {
		if len(p.declared) == 0 || !r.req.ran[p.index] {
			continue
		}
		kinds, ended := kindsOf(p.declared), r.req.errs[p.index]
		_, err := ctrlkit.IgnoreExit(ctrl.Result{}, ended)
		switch {
		case err != nil:
			set.MarkLastTryFailed(kinds, err.Error())
		case len(ctrlkit.Waits(ended)) > 0:
			unsure = append(unsure, kinds...)
		default:
			set.MarkLastTryPassed(kinds)
		}
	}
	if out.err == nil && r.allRan() {
		set.MarkObserved(unsure...)
	}
}

func kindsOf(declared []condition.Declaration) []string {
	kinds := make([]string, len(declared))
	for i, d := range declared {
		kinds[i] = d.Type
	}
	return kinds
}

// textsApart is how often the text of a failure may change in a condition while nothing else does,
// and how long one may be held that says the same in other numbers.
const textsApart = 10 * time.Minute

// holdStill keeps a failure that says something else at each try from being a write at each try.
func (r *run[T]) holdStill(out *outcome) {
	set, m := r.req.Conditions, r.memory
	if out.err == nil || !set.MessagesChanged() {
		m.numbers = time.Time{}
		return
	}
	if !r.newTexts && (m.numbers.IsZero() || r.now.Sub(m.numbers) < textsApart) {
		if set.KeepSimilarMessages() && m.numbers.IsZero() {
			m.numbers = r.now
		}
		if !set.MessagesChanged() {
			return
		}
	}
	if !r.newTexts && r.now.Sub(m.texts) < textsApart {
		set.KeepMessages()
		return
	}
	m.texts, m.numbers, r.newTexts = r.now, time.Time{}, true
}
