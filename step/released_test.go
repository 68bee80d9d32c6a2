// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
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

// To remove a finalizer is a decision: nothing is cleaned up after that, and an
// event says so.
func TestARemovedFinalizerIsADecision(t *testing.T) {
	t.Run("while the cleanup fails", removedWhileCleanupFails)
	t.Run("the object goes before the event comes", removedBeforeTheEvent)
	t.Run("beside a foreign finalizer", removedBesideAForeignOne)
	t.Run("before the cleanup began", removedBeforeCleanup)
	t.Run("the cache does not know it yet", removedPastTheCache)
}

// cleanups counts the calls of A's Cleanup in a log.
func cleanups(log []string) int { return count(log, "Cleanup A") }

func removedWhileCleanupFails(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	e := w.engine(full(&log, "A", passes, failsWith(errFirst), nil))
	w.must()
	w.remove(newThing())
	w.fails()
	w.takeEvents()
	last := w.removeFinalizers()
	gone(e, last)
	w.must()
	w.must()
	same(t, "cleanups", 1, cleanups(log))
	want := []string{`FinalizerRemoved: another client has removed finalizer "` + finalizer + `": the object is gone, and nothing is cleaned up`}
	w.said(want...)
	w.create(successor())
	w.must()
	w.is(condition.Ready, "True Ready")
}

func removedBeforeTheEvent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var log []string
		e := w.engine(full(&log, "A", passes, failsWith(errFirst), nil))
		w.must()
		w.remove(newThing())
		w.fails()
		last := w.removeFinalizers()
		requeues(w)
		gone(e, last)
		w.must()
		same(t, "cleanups", 1, cleanups(log))
	})
}

func removedBesideAForeignOne(t *testing.T) {
	w := newWorld(t, newThing(foreignFinalizer))
	var log []string
	e := w.engine(full(&log, "A", passes, failsWith(errFirst), nil))
	w.must()
	w.remove(newThing())
	w.fails()
	w.takeEvents()
	w.removeFinalizers(foreignFinalizer)
	for range 3 {
		w.must()
	}
	same(t, "cleanups", 1, cleanups(log))
	want := []string{`FinalizerRemoved: another client has removed finalizer "` + finalizer + `": the object is being deleted, and nothing is cleaned up`}
	w.said(want...)
	ready := `False FinalizerRemoved: it is being deleted, another client has removed our finalizer "` + finalizer +
		`", so nothing is cleaned up, and it is kept by finalizer "` + foreignFinalizer + `", which another controller has to remove`
	w.is(condition.Ready, ready)
	t.Run("after a restart", func(t *testing.T) {
		e = w.engine(full(&log, "A", passes, passes, nil))
		w.takeWrites()
		w.must()
		if got := w.conditionOf(condition.Ready); got != ready || len(w.takeWrites()) > 0 || len(w.takeEvents()) > 0 {
			t.Errorf("Ready: got %q", got)
		}
	})
	last := w.removeFinalizers()
	gone(e, last)
	w.must()
	same(t, "cleanups", 1, cleanups(log))
}

func removedBeforeCleanup(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	e := w.engine(full(&log, "A", passes, passes, nil))
	w.must()
	w.remove(newThing())
	gone(e, w.removeFinalizers())
	w.must()
	same(t, "cleanups", 0, cleanups(log))
}

func removedPastTheCache(t *testing.T) {
	w := newWorld(t, newThing(foreignFinalizer))
	var log []string
	liveEngine(w, full(&log, "A", passes, passes, nil))
	w.must()
	w.remove(newThing())
	w.lag()
	w.removeFinalizers(foreignFinalizer)
	requeues(w)
	w.catchUp()
	w.must()
	same(t, "cleanups", 0, cleanups(log))
}

// A finalizer that was removed from an object that is not being deleted stays removed, also after a
// restart, and until that is taken back.
func TestAFinalizerRemovedFromALivingObject(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	steps := func() step.Step[*Thing] { return full(&log, "A", passes, passes, nil) }
	w.engine(steps())
	w.must()
	w.removeFinalizers()
	w.takeEvents()
	for range 3 {
		w.must()
	}
	if got := w.thing(); len(got.Finalizers) > 0 || got.Annotations[step.FinalizerRemovedAnnotation] != finalizer {
		t.Errorf("finalizers %v, annotations %v", got.Finalizers, got.Annotations)
	}
	if got := w.takeEvents(); len(got) != 1 || !strings.HasPrefix(got[0], "FinalizerRemoved: ") || !strings.Contains(got[0], step.FinalizerRemovedAnnotation) {
		t.Errorf("events: %v", got)
	}
	same(t, "calls of Do", 4, count(log, "Do A"))
	w.engine(steps()) // another process
	w.takeWrites()
	w.must()
	if got := w.thing(); len(got.Finalizers) > 0 || len(w.takeWrites()) > 0 || len(w.takeEvents()) > 0 {
		t.Errorf("after a restart: finalizers %v", got.Finalizers)
	}
	t.Run("deleted", func(t *testing.T) {
		w := newWorld(t, w.thing())
		e := w.engine(steps())
		w.must()
		last := w.thing()
		w.remove(last)
		gone(e, last)
		w.must()
		same(t, "cleanups", 0, count(log, "Cleanup A"))
	})
	t.Run("taken back by removing the annotation", func(t *testing.T) {
		w.edit(func(obj *Thing) { obj.Annotations = nil })
		w.must()
		if got := w.thing(); !slices.Contains(got.Finalizers, finalizer) || len(got.Annotations) > 0 {
			t.Errorf("finalizers %v, annotations %v", got.Finalizers, got.Annotations)
		}
		w.remove(newThing())
		w.must()
		if got := count(log, "Cleanup A"); got != 1 || w.thing() != nil {
			t.Errorf("%d cleanups", got)
		}
	})
}

// What was removed from a living object can be taken back by putting it there again, and is not
// put there because the annotation could not be written.
func TestAFinalizerRemovedFromALivingObjectIsRecorded(t *testing.T) {
	var log []string
	steps := func() step.Step[*Thing] { return full(&log, "A", passes, passes, nil) }
	t.Run("taken back by putting the finalizer there", func(t *testing.T) {
		w := newWorld(t, newThing())
		w.engine(steps())
		w.must()
		w.removeFinalizers()
		w.must()
		w.edit(func(obj *Thing) { obj.Finalizers = []string{finalizer} })
		w.must()
		if got := w.thing(); !slices.Contains(got.Finalizers, finalizer) || len(got.Annotations) > 0 {
			t.Errorf("finalizers %v, annotations %v", got.Finalizers, got.Annotations)
		}
	})
	t.Run("the annotation can't be written at first", func(t *testing.T) {
		w := newWorld(t, newThing())
		w.engine(steps())
		w.must()
		w.removeFinalizers()
		w.fault = failOn("patch Thing", errFirst)
		w.fails()
		w.fault = nil
		w.must()
		if got := w.thing(); len(got.Finalizers) > 0 || got.Annotations[step.FinalizerRemovedAnnotation] != finalizer {
			t.Errorf("finalizers %v, annotations %v", got.Finalizers, got.Annotations)
		}
	})
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

func TestWhatEndsACleanup(t *testing.T) {
	tests := []struct {
		name    string
		cleanup doFunc
		gone    bool
	}{
		{"ContinueAndRequeueAfter does not interrupt it", func(context.Context, *request) (ctrl.Result, error) {
			return ctrlkit.ContinueAndRequeueAfter(time.Minute)
		}, true},
		{"RequeueAfter does", again(time.Minute), false},
		{"Exit does: the cleanups after it are not done", func(context.Context, *request) (ctrl.Result, error) { return ctrlkit.Exit() }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, deletedThing(finalizer))
			var log []string
			w.engine(cleaning("First", passes, logged(&log, "First", passes)), cleaning("A", passes, test.cleanup))
			w.must()
			if gone := w.thing() == nil; gone != test.gone || gone != (len(log) == 1) {
				t.Errorf("gone: %v, cleanups after it: %v", gone, log)
			}
		})
	}
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
