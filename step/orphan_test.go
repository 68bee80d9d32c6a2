// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

// TestLostFinalizer is about objects that the API server has removed although they had our
// finalizer, or should have had it.
func TestLostFinalizer(t *testing.T) {
	last := newThing(finalizer)
	last.Spec.Size = 42
	tests := []struct {
		name   string
		before func(t *testing.T, w *world, e *step.Engine[*Thing]) // what happened to the object before it was gone
		last   *Thing
		want   int // how often it is cleaned up
	}{
		{"the last state has it", nil, last, 1},
		{"the last state has it not", nil, newThing(), 0},
		{"it is paused, and its finalizer was removed", func(t *testing.T, w *world, _ *step.Engine[*Thing]) {
			w.create(newThing())
			w.must()
			w.edit(func(obj *Thing) {
				obj.Finalizers, obj.Annotations = nil, map[string]string{step.PauseAnnotation: "true"}
			})
			w.remove(newThing())
		}, func() *Thing {
			obj := newThing()
			obj.Annotations = map[string]string{step.PauseAnnotation: "true"}
			return obj
		}(), 0},
		{"the last state has that of another", nil, newThing(foreignFinalizer), 0},
		{"it was put there, and another client removed it", func(t *testing.T, w *world, _ *step.Engine[*Thing]) {
			w.create(newThing())
			w.must()
			w.edit(func(obj *Thing) { obj.Finalizers = nil })
			w.remove(newThing())
		}, newThing(), 0},
		{"the write of the finalizer never arrived", func(t *testing.T, w *world, _ *step.Engine[*Thing]) {
			w.create(newThing())
			w.fault = failOn("patch Thing", errFirst)
			w.fails()
			w.fault = nil
			w.remove(newThing())
		}, newThing(), 0},
		{"it was cleaned up before", func(t *testing.T, w *world, _ *step.Engine[*Thing]) {
			w.create(last.DeepCopyObject().(*Thing))
			w.remove(newThing())
			w.must()
			isGone(w)
		}, last, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			var cleaned []int
			e := w.engine(cleaning("A", passes, does(func(_ context.Context, req *request) {
				cleaned = append(cleaned, req.Object.Spec.Size)
				if req.Conditions != nil {
					req.Object.Status.Size = 1
				}
			})))
			if test.before != nil {
				test.before(t, w, e)
			}
			w.takeWrites()
			if !e.EventFilter().Delete(event.DeleteEvent{Object: test.last}) {
				t.Error("an event was filtered")
			}
			w.must()
			w.must()
			if len(cleaned) != test.want {
				t.Errorf("it was cleaned up %d times, want %d", len(cleaned), test.want)
			}
			if test.name == "the last state has it" && !slices.Equal(cleaned, []int{42}) {
				t.Errorf("it was cleaned up from %v, want the last state", cleaned)
			}
			w.wrote()
		})
	}
}

func TestLostFinalizerOfAnObjectThatHasASuccessor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		var log []string
		uid := func(verb string, then doFunc) doFunc {
			return func(ctx context.Context, req *request) (ctrl.Result, error) {
				log = append(log, verb+" "+string(req.Object.UID))
				return then(ctx, req)
			}
		}
		outcomes := []doFunc{failsWith(errFirst), waits("the bucket to be empty"), panics("a bug"), passes}
		e := w.engine(cleaning("A", uid("Do", passes), uid("Cleanup", func(ctx context.Context, req *request) (ctrl.Result, error) {
			next := outcomes[0]
			outcomes = outcomes[1:]
			return next(ctx, req)
		})))
		old, successor := newThing(), newThing()
		old.Finalizers, successor.UID = []string{finalizer}, "uid-b"
		w.create(successor)
		e.EventFilter().Delete(event.DeleteEvent{Object: old})
		if err := w.fails(); !errors.Is(err, errFirst) { // the cleanup is tried again until it passes
			t.Errorf("got %v", err)
		}
		requeues(w)
		w.fails()
		w.must()
		want := []string{"Cleanup uid-a", "Cleanup uid-a", "Cleanup uid-a", "Cleanup uid-a", "Do uid-b"}
		same(t, "calls", want, log)
		same(t, "finalizers", []string{finalizer}, w.thing().Finalizers)
		w.must()
		same(t, "calls", 4, count(log, "Cleanup uid-a"))
	})
}

func TestLostFinalizerMayWriteBesideAFence(t *testing.T) {
	w := newWorld(t, configMap("child", nil))
	e := liveEngine(w, cleaning("A", passes, func(ctx context.Context, req *request) (ctrl.Result, error) {
		return ctrlkit.RequeueIfError(client.IgnoreNotFound(req.Client.Delete(ctx, configMap("child", nil))))
	}))
	last := newThing(finalizer)
	e.EventFilter().Delete(event.DeleteEvent{Object: last})
	same(t, "requeued after", 0, w.must().RequeueAfter)
	w.wrote("delete ConfigMap child")
}

func TestAnotherObjectOfTheNameIsAnotherObject(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	e := w.engine(full(&log, "A", passes, passes, nil))
	w.must()
	w.remove(newThing())
	w.must() // cleaned up and released
	second := newThing()
	second.UID = types.UID("uid-b")
	w.create(second)
	w.must()
	last := w.thing() // it goes at once although it has the finalizer
	w.edit(func(obj *Thing) { obj.Finalizers = nil })
	w.remove(second)
	e.EventFilter().Delete(event.DeleteEvent{Object: last})
	w.must()
	if w.thing() != nil || count(log, "Cleanup A") != 2 {
		t.Errorf("calls: %v", log)
	}
}

func successor() *Thing {
	obj := newThing()
	obj.UID = "uid-b"
	return obj
}

// A successor waits for the cleanup of the object that had its name before, and says so.
func TestASuccessorSaysWhatItWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		cleanup, did := waits("the bucket to be empty"), 0
		e := w.engine(cleaning("A", changing(func(*Thing) { did++ }), func(ctx context.Context, req *request) (ctrl.Result, error) { return cleanup(ctx, req) }))
		old := newThing(finalizer)
		w.create(successor())
		gone(e, old)
		check := func(ready string) {
			t.Helper()
			w.is(condition.Ready, ready)
		}
		requeues(w)
		const text = "an object of this name with UID uid-a was deleted, and its cleanup is not done: "
		check("False PredecessorNotCleanedUp: " + text + "it waits for the bucket to be empty")
		cleanup = failsWith(errFirst)
		w.takeWrites()
		w.fails()
		check("False PredecessorNotCleanedUp: " + text + "A: the first thing broke")
		w.fails()
		w.wrote("patch status of Thing a")
		if got := w.takeEvents(); len(got) != 1 || !strings.HasPrefix(got[0], step.ReasonPredecessor) {
			t.Errorf("events: %v", got)
		}
		if did > 0 {
			t.Error("Do was called while something of the name is still outside")
		}
		cleanup = passes
		w.must()
		check("True Ready")
		same(t, "did", 1, did)
	})
}
