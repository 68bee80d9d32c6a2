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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

// removeFinalizers is what a person does who wants an object gone and what is outside kept. It
// returns the state that the event of the deletion tells.
func (w *world) removeFinalizers(keep ...string) *Thing {
	w.tb.Helper()
	last := w.thing()
	w.edit(func(obj *Thing) { obj.Finalizers = keep })
	return last
}

// reports is what the journal of the deletion of a Thing tells an engine.
func gone(e *step.Engine[*Thing], last *Thing) {
	e.EventFilter().Delete(event.DeleteEvent{Object: last})
}

// A finalizer that a person has taken off is a decision: nothing is cleaned up after that, and an
// event says so.
func TestAFinalizerThatWasTakenOffIsADecision(t *testing.T) {
	cleanups := func(log []string) int { return count(log, "Cleanup A") }
	t.Run("while the clean-up fails", func(t *testing.T) {
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
		if got := cleanups(log); got != 1 {
			t.Errorf("%d clean-ups, want that before the finalizer was taken off", got)
		}
		want := []string{`FinalizerRemoved: another client has removed finalizer "` + finalizer + `": the object is gone, and nothing is cleaned up`}
		if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		w.create(successor())
		w.must()
		if got := w.conditionOf(condition.Ready); got != "True Ready" {
			t.Errorf("a successor of the name is %q", got)
		}
	})
	t.Run("the object goes before the event comes", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, newThing())
			var log []string
			e := w.engine(full(&log, "A", passes, failsWith(errFirst), nil))
			w.must()
			w.remove(newThing())
			w.fails()
			last := w.removeFinalizers()
			if got := w.must(); got.RequeueAfter <= 0 {
				t.Error("the event is not waited for")
			}
			gone(e, last)
			w.must()
			if got := cleanups(log); got != 1 {
				t.Errorf("%d clean-ups", got)
			}
		})
	})
	t.Run("beside a foreign finalizer", func(t *testing.T) {
		obj := newThing()
		obj.Finalizers = []string{foreignFinalizer}
		w := newWorld(t, obj)
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
		if got := cleanups(log); got != 1 {
			t.Errorf("%d clean-ups", got)
		}
		want := []string{`FinalizerRemoved: another client has removed finalizer "` + finalizer + `": the object is being deleted, and nothing is cleaned up`}
		if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		ready := `False FinalizerRemoved: it is being deleted, another client has removed our finalizer "` + finalizer +
			`", so nothing is cleaned up, and it is kept by finalizer "` + foreignFinalizer + `", which another controller has to remove`
		if got := w.conditionOf(condition.Ready); got != ready {
			t.Errorf("Ready: got %q, want %q", got, ready)
		}
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
		if got := cleanups(log); got != 1 {
			t.Errorf("%d clean-ups", got)
		}
	})
	t.Run("before the clean-up began", func(t *testing.T) {
		w := newWorld(t, newThing())
		var log []string
		e := w.engine(full(&log, "A", passes, passes, nil))
		w.must()
		w.remove(newThing())
		gone(e, w.removeFinalizers())
		w.must()
		if got := cleanups(log); got != 0 {
			t.Errorf("%d clean-ups", got)
		}
	})
	t.Run("the cache does not know it yet", func(t *testing.T) {
		obj := newThing()
		obj.Finalizers = []string{foreignFinalizer}
		w := newWorld(t, obj)
		options := w.options()
		options.APIReader = w.liveReader()
		var log []string
		w.engineWith(options, full(&log, "A", passes, passes, nil))
		w.must()
		w.remove(newThing())
		w.lag()
		w.removeFinalizers(foreignFinalizer)
		if got := w.must(); got.RequeueAfter <= 0 {
			t.Error("nothing would end the wait for the cache")
		}
		w.catchUp()
		w.must()
		if got := cleanups(log); got != 0 {
			t.Errorf("%d clean-ups", got)
		}
	})
}

func successor() *Thing {
	obj := newThing()
	obj.UID = "uid-b"
	return obj
}

// A finalizer that was taken off an object that is not being deleted stays off, also after a
// restart, and until that is taken back.
func TestAFinalizerThatWasTakenOffALivingObject(t *testing.T) {
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
	if got := count(log, "Do A"); got != 4 {
		t.Errorf("Do was called %d times: the object is still ours", got)
	}
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
		if got := count(log, "Cleanup A"); got != 0 {
			t.Errorf("%d clean-ups", got)
		}
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
			t.Errorf("%d clean-ups", got)
		}
	})
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
// clean-up is owed.
func TestNobodyHasTakenTheFinalizerOff(t *testing.T) {
	t.Run("the cache is older than the write of the finalizer", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(full(new([]string), "A", passes, passes, nil))
			w.lag()
			w.must()
			pass(time.Minute) // long enough to go on with the old one
			_, _ = w.reconcile()
			w.catchUp()
			w.must()
			if got := w.thing(); len(got.Annotations) > 0 || !slices.Contains(got.Finalizers, finalizer) || len(w.takeEvents()) > 0 {
				t.Errorf("finalizers %v, annotations %v", got.Finalizers, got.Annotations)
			}
		})
	})
	replaced := func(change func(old *Thing)) (cleaned []string) {
		w := newWorld(t)
		e := w.engine(cleaning("A", passes, func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			cleaned = append(cleaned, string(req.Object.UID))
			return ctrlkit.NoRequeue()
		}))
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
		if diff := cmp.Diff([]string{"uid-a"}, replaced(func(*Thing) {})); diff != "" {
			t.Errorf("cleaned up (-want +got):\n%s", diff)
		}
	})
	t.Run("replaced, and it was being deleted", func(t *testing.T) {
		now := metav1.Now()
		if got := replaced(func(old *Thing) { old.DeletionTimestamp = &now }); len(got) > 0 {
			t.Errorf("cleaned up %v, although it went only because its finalizer was taken off", got)
		}
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
		if got := count(log, "Cleanup A"); got != 1 {
			t.Errorf("%d clean-ups, want one: the write may have arrived", got)
		}
	})
}

// A successor waits for the clean-up of the object that had its name before, and says so.
func TestASuccessorSaysWhatItWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		cleanup, did := waits("the bucket to be empty"), 0
		e := w.engine(cleaning("A", changing(func(*Thing) { did++ }), func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) { return cleanup(ctx, req) }))
		old := newThing()
		old.Finalizers = []string{finalizer}
		w.create(successor())
		gone(e, old)
		check := func(ready string) {
			t.Helper()
			if got := w.conditionOf(condition.Ready); got != ready {
				t.Errorf("Ready: got %q, want %q", got, ready)
			}
		}
		if got := w.must(); got.RequeueAfter <= 0 {
			t.Error("nothing would end the wait")
		}
		const text = "an object of this name with UID uid-a was deleted, and its cleanup is not done: "
		check("False PredecessorNotCleanedUp: " + text + "it waits for the bucket to be empty")
		cleanup = failsWith(errFirst)
		w.takeWrites()
		w.fails()
		check("False PredecessorNotCleanedUp: " + text + "A: the first thing broke")
		w.fails()
		if diff := cmp.Diff([]string{"patch status of Thing a"}, w.takeWrites()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if got := w.takeEvents(); len(got) != 1 || !strings.HasPrefix(got[0], step.ReasonPredecessor) {
			t.Errorf("events: %v", got)
		}
		if did > 0 {
			t.Error("Do was called while something of the name is still outside")
		}
		cleanup = passes
		w.must()
		check("True Ready")
		if did != 1 {
			t.Errorf("Do was called %d times", did)
		}
	})
}

func TestWhatEndsACleanup(t *testing.T) {
	tests := []struct {
		name    string
		cleanup doFunc
		gone    bool
	}{
		{"ContinueAndRequeueAfter does not interrupt it", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.ContinueAndRequeueAfter(time.Minute)
		}, true},
		{"RequeueAfter does", again(time.Minute), false},
		{"Exit does: the clean-ups after it are not done", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrlkit.Exit() }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, deletedThing(finalizer))
			var log []string
			w.engine(cleaning("First", passes, logged(&log, "First", passes)), cleaning("A", passes, test.cleanup))
			w.must()
			if gone := w.thing() == nil; gone != test.gone || gone != (len(log) == 1) {
				t.Errorf("gone: %v, clean-ups after it: %v", gone, log)
			}
		})
	}
}

func TestAFinalizerIsRetired(t *testing.T) {
	const old = "test.example.com/old"
	withRetired := func(w *world) step.Options[*Thing] {
		options := w.options()
		options.RetiredFinalizers = []string{old}
		return options
	}
	living := func(finalizers ...string) *Thing {
		obj := newThing()
		obj.Finalizers = finalizers
		return obj
	}
	tests := []struct {
		name    string
		obj     *Thing
		cleans  bool
		want    []string // finalizers; nil if the object is gone
		writes  int      // of the metadata
		cleaned int
	}{
		{"without a Cleaner, living", living(foreignFinalizer, old), false, []string{foreignFinalizer}, 1, 0},
		{"without a Cleaner, being deleted", deletedThing(old), false, nil, 1, 0},
		{"without a Cleaner, kept by others", deletedThing(foreignFinalizer, old), false, []string{foreignFinalizer}, 1, 0},
		{"renamed, living", living(foreignFinalizer, old), true, []string{foreignFinalizer, finalizer}, 1, 0},
		{"renamed, living, and both are there", living(old, finalizer), true, []string{finalizer}, 1, 0},
		{"renamed, being deleted", deletedThing(old), true, nil, 1, 1},
		{"renamed, kept by others", deletedThing(old, foreignFinalizer), true, []string{foreignFinalizer}, 1, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.obj)
			var log []string
			s := doing("A", passes)
			if test.cleans {
				s = full(&log, "A", passes, passes, nil)
			}
			w.engineWith(withRetired(w), s)
			w.must()
			w.must()
			var got []string
			if obj := w.thing(); obj != nil {
				got = obj.Finalizers
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			if got := count(w.takeWrites(), "patch Thing a"); got != test.writes {
				t.Errorf("%d patches of the metadata, want %d", got, test.writes)
			}
			if got := count(log, "Cleanup A"); got != test.cleaned {
				t.Errorf("%d clean-ups, want %d", got, test.cleaned)
			}
			if got := w.takeEvents(); len(got) > 0 {
				t.Errorf("events: %v", got)
			}
		})
	}
	t.Run("one that is not named is hinted at", func(t *testing.T) {
		w := newWorld(t, deletedThing(finalizer))
		w.engine(doing("A", passes))
		w.must()
		if got := w.conditionOf(condition.Ready); !strings.Contains(got, "Options.RetiredFinalizers") || strings.Contains(got, "clean-up is done") {
			t.Errorf("Ready: %q", got)
		}
	})
	t.Run("it can't be in use, too", func(t *testing.T) {
		options := newWorld(t).options()
		options.RetiredFinalizers = []string{finalizer}
		_, err := step.New(options, step.Step[*Thing](cleaning("A", passes, passes)))
		if err == nil || !strings.Contains(err.Error(), "RetiredFinalizers") {
			t.Errorf("got %v", err)
		}
	})
}

// A Hidden is an object whose generation is kept behind a pointer that may be nil.
type Hidden struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            struct {
		*Observed  `json:",inline"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

type Observed struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

func (h *Hidden) DeepCopyObject() runtime.Object {
	c := *h
	c.ObjectMeta = *h.ObjectMeta.DeepCopy()
	if h.Status.Observed != nil {
		o := *h.Status.Observed
		c.Status.Observed = &o
	}
	c.Status.Conditions = slices.Clone(h.Status.Conditions)
	return &c
}

func TestAnObservedGenerationBehindAPointer(t *testing.T) {
	newScheme().AddKnownTypes(thingVersion, &Hidden{})
	for _, observed := range []*Observed{nil, {ObservedGeneration: 1}} {
		obj := &Hidden{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a", Generation: 3}}
		obj.Status.Observed = observed
		server := newHiddenClient(obj)
		e, err := step.New(step.Options[*Hidden]{Name: "hidden", Client: server}, step.Func("A", func(context.Context, *step.Request[*Hidden]) (ctrl.Result, error) {
			return ctrlkit.NoRequeue()
		}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Reconcile(t.Context(), thingRequest); err != nil {
			t.Error(err)
		}
		got := &Hidden{}
		if err := server.Get(t.Context(), thingRequest.NamespacedName, got); err != nil {
			t.Fatal(err)
		}
		if observed != nil && got.Status.ObservedGeneration != 3 {
			t.Errorf("status.observedGeneration: %d, want 3", got.Status.ObservedGeneration)
		}
	}
}

// The finalizer is taken off by hand at any moment of the life of an object: it is not cleaned up
// by a reconcile that begins afterwards.
func TestFinalizersTakenOffAtAnyMoment(t *testing.T) {
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
			e = w.engineWith(options, cleaning("A", passes, func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) {
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
				t.Errorf("cleaned up %d times after the finalizer was taken off", after)
			}
		})
	}
}
