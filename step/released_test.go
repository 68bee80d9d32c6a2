// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
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

// The right twins: no client has removed it, so that the finalizer is put there, and the
// cleanup is pending.
func TestNoClientHasRemovedTheFinalizer(t *testing.T) {
	runInBubble(t, "the cache is older than the write of the finalizer", func(t *testing.T) {
		w := newWorld(t, newThing())
		w.engine(full(new([]string), "A", passes, passes, nil))
		w.lag()
		w.must()
		pass(time.Minute) // long enough to continue with the old one
		_, _ = w.reconcile()
		w.catchUp()
		w.must()
		if got := w.thing(); len(got.Annotations) > 0 || !slices.Contains(got.Finalizers, finalizer) || len(w.takeEvents()) > 0 {
			t.Errorf("finalizers %v, annotations %v", got.Finalizers, got.Annotations)
		}
	})
	replaced := func(change func(old *Thing)) (cleaned []string) {
		w := newWorld(t)
		e := w.engine(cleaning("A", passes, does(func(_ context.Context, req *request) {
			cleaned = append(cleaned, string(req.Object.UID))
		})))
		w.create(newThing())
		w.must()
		old := w.thing()
		change(old)
		w.edit(func(obj *Thing) { obj.Finalizers = nil })
		w.remove(newThing())
		w.create(successor())
		e.EventFilter().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: w.thing()})
		w.must()
		w.must()
		return cleaned
	}
	t.Run("replaced while the watch was interrupted", func(t *testing.T) {
		same(t, "cleaned up", []string{"uid-a"}, replaced(func(*Thing) {}))
	})
	t.Run("replaced, and it was being deleted", func(t *testing.T) {
		now := metav1.Now()
		none(t, "replaced", replaced(func(old *Thing) { old.DeletionTimestamp = &now }))
	})
	t.Run("the final state is not known, and the answer to the write was lost", func(t *testing.T) {
		w := newWorld(t, newThing())
		var log []string
		e := w.engine(full(&log, "A", passes, passes, nil))
		w.fault = failOn("patch Thing", errFirst)
		w.fails()
		w.fault = nil
		w.remove(newThing())
		e.EventFilter().Delete(event.DeleteEvent{Object: newThing(), DeleteStateUnknown: true})
		w.must()
		same(t, "cleanups", 1, count(log, "Cleanup A"))
	})
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
			e = w.engineWith(options, cleaning("A", passes, func(context.Context, *request) (ctrl.Result, error) {
				if began {
					after++
				}
				return ctrl.Result{}, errFirst
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

func successor() *Thing { return thingWith(&testing.T{}, "uid uid-b") }
