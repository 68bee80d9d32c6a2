// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit/step"
)

// removeFinalizers is what a person does who wants an object gone and what is outside kept. It
// returns the state that the event of the deletion has.
func (w *world) removeFinalizers(keep ...string) *Thing {
	w.tb.Helper()
	last := w.thing()
	w.edit(func(obj *Thing) { obj.Finalizers = keep })
	return last
}

// reports is what the journal of the deletion of a Thing reports to an engine.
func gone(e *step.Engine[*Thing], last *Thing) {
	e.EventFilter().Delete(event.DeleteEvent{Object: last})
}

// The finalizer is removed by hand at any moment of the life of an object: it is not cleaned up
// by a reconcile that begins afterwards.
func TestFinalizersRemovedAtAnyMoment(t *testing.T) {
	for moment := range 12 {
		t.Run(fmt.Sprint("before request ", moment), func(t *testing.T) {
			w := newWorld(t, newThing())
			options := w.options()
			options.APIReader = w.liveReader()
			released, after, n := false, 0, 0
			var e *step.Engine[*Thing]
			w.fault = func(string) error {
				if n++; n == moment+1 && w.thing() != nil && slices.Contains(w.thing().Finalizers, finalizer) {
					released = true
					last := w.removeFinalizers()
					if w.thing() == nil {
						gone(e, last)
					}
				}
				return nil
			}
			began := false
			e = w.engineWith(options, cleaning("A", passes, func(context.Context, *request) error {
				if began {
					after++
				}
				return errFirst
			}))
			for i := range 6 {
				if i == 3 && w.thing() != nil {
					last := w.thing()
					if w.remove(newThing()); w.thing() == nil {
						gone(e, last)
					}
				}
				began = released
				if _, err := w.reconcile(); err != nil && !errors.Is(err, errFirst) {
					t.Error(err)
				}
			}
			if after > 0 {
				t.Errorf("cleaned up %d times after the finalizer was removed", after)
			}
		})
	}
}
