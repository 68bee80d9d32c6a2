// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

const foreignFinalizer = "other.example.com/hold"

func TestFinalizerComesBeforeEveryDo(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	seen := does(func(_ context.Context, req *request) {
		if !slices.Contains(w.thing().Finalizers, finalizer) {
			t.Error("the finalizer is not on the server")
		}
		if !slices.Contains(req.Object.Finalizers, finalizer) || !slices.Contains(req.Snapshot().Finalizers, finalizer) {
			t.Error("the finalizer is not on the object of the request")
		}
	})
	w.engine(doing("First", seen), cleaning("Second", logged(&log, "Do", seen), passes))
	w.must()
	w.wrote("patch Thing a", "patch status of Thing a")
	w.must()
	w.wrote()
	if len(log) != 2 {
		t.Errorf("the Cleaner ran %d times, want 2", len(log))
	}
}

func TestWhoGetsAFinalizer(t *testing.T) {
	found := step.NewKey[bool]("found")
	put := doing("Put", does(func(_ context.Context, req *request) {
		step.Put(req, found, true)
		req.Object.Status.Size = 7
	}))
	tests := []struct {
		name  string
		steps []step.Step[*Thing]
		have  []string
		want  []string
	}{
		{"nothing to clean up", []step.Step[*Thing]{doing("A", passes)}, nil, nil},
		{"something to clean up", []step.Step[*Thing]{cleaning("A", passes, passes)}, nil, []string{finalizer}},
		{"in a group", []step.Step[*Thing]{step.Group("g", cleaning("A", passes, passes))}, nil, []string{finalizer}},
		{"not wanted", []step.Step[*Thing]{step.When("never", never, cleaning("A", passes, passes))}, nil, nil},
		{"not wanted any more", []step.Step[*Thing]{step.When("never", never, cleaning("A", passes, passes))},
			[]string{finalizer}, []string{finalizer}},
		{"wanted by the inner condition only", []step.Step[*Thing]{step.When("never", never, step.When("always", always, cleaning("A", passes, passes)))},
			nil, nil},
		{"others are left alone", []step.Step[*Thing]{cleaning("A", passes, passes)}, []string{foreignFinalizer}, []string{foreignFinalizer, finalizer}},
		{"others are left alone, last", []step.Step[*Thing]{cleaning("A", passes, passes)}, []string{finalizer, foreignFinalizer}, []string{finalizer, foreignFinalizer}},
		{"a workflow", []step.Step[*Thing]{step.WorkflowWithCleanup("A", noAction, noAction)}, nil, []string{finalizer}},
		{"wanted since an earlier step", []step.Step[*Thing]{put, step.When("found", func(req *request) bool {
			got, _ := step.Lookup(req, found)
			return got
		}, cleaning("A", func(_ context.Context, req *request) (ctrl.Result, error) {
			if !slices.Contains(req.Snapshot().Finalizers, finalizer) {
				return ctrl.Result{}, errors.New("done without the finalizer")
			}
			return ctrlkit.NoRequeue()
		}, passes))},
			nil, []string{finalizer}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newThing()
			obj.Finalizers = test.have
			w := newWorld(t, obj)
			w.engine(test.steps...)
			w.must()
			same(t, "finalizers", test.want, w.thing().Finalizers)
			if got, want := w.thing().Status.Size, 7; test.steps[0].Name() == "Put" && got != want {
				t.Errorf("status.size: got %d, want %d: what was changed before the finalizer was written is kept", got, want)
			}
			patches := 0
			for _, write := range w.takeWrites() {
				if write == "patch Thing a" {
					patches++
				}
			}
			if want := len(test.want) - len(test.have); patches != want {
				t.Errorf("%d patches of the metadata, want %d", patches, want)
			}
		})
	}
}

func noAction(*request) ctrlkit.Action {
	return ctrlkit.NewAction("nothing", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() })
}

func TestFinalizerCanBeNamed(t *testing.T) {
	w := newWorld(t, newThing())
	e := w.engineWith(withFinalizer(w.options(), "example.com/named"), cleaning("A", passes, passes))
	w.must()
	same(t, "thing.Finalizers", []string{"example.com/named"}, w.thing().Finalizers)
	same(t, "finalizer of the engine", "example.com/named", e.Finalizer())
}

func TestNoDoWithoutTheFinalizer(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		ready string // the beginning of the condition
	}{
		{"a conflict is silent", conflictError(), ""},
		{"forbidden", forbiddenError(), "False Forbidden: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.fault = failOn("patch Thing", test.err)
			var log []string
			w.engine(full(&log, "A", passes, passes, nil))
			run := w.fails
			if test.ready == "" {
				run = w.conflicts
			}
			if err := run(); !errors.Is(err, test.err) || !strings.Contains(err.Error(), finalizer) {
				t.Errorf("got %v, want %v and the finalizer", err, test.err)
			}
			same(t, "calls", []string{"Post A"}, log)
			if got := w.conditionOf(condition.Ready); !strings.HasPrefix(got, test.ready) || (test.ready == "") != (got == "") {
				t.Errorf("Ready: got %q, want %q", got, test.ready)
			}
			w.fault = nil
			w.must()
			same(t, "calls", []string{"Post A", "Do A", "Post A"}, log)
		})
	}
}

func TestCleanupEndsWithTheFinalizer(t *testing.T) {
	w := newWorld(t, deletedThing(finalizer))
	w.engine(
		keeping("K", passes, "Found"),
		cleaning("A", passes, func(_ context.Context, req *request) (ctrl.Result, error) {
			if !slices.Contains(w.thing().Finalizers, finalizer) {
				t.Error("the finalizer went before the cleanup")
			}
			req.Object.Status.Size = 7 // no client would read it
			return ctrlkit.NoRequeue()
		}))
	w.must()
	if obj := w.thing(); obj != nil {
		t.Errorf("the object is still there: %v", obj.Finalizers)
	}
	w.wrote("patch Thing a")
	w.ended(journal.ResultDeleted)
	w.must()
	w.ended(journal.ResultGone)
}

func TestCleanupThatDoesNotPassKeepsTheFinalizer(t *testing.T) {
	tests := []struct {
		name    string
		cleanup doFunc
		fails   bool
		after   time.Duration
		ready   string
	}{
		{"it fails", failsWith(errFirst), true, 0, "False TemporaryError: cleaning up: A: the first thing broke"},
		{"it waits", waits("the bucket to be empty"), false, 0, "False CleaningUp: cleaning up: waits for the bucket to be empty"},
		{"it wants to be run again", again(time.Minute), false, time.Minute, "False CleaningUp: cleaning up: the cleanup continues"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, deletedThing(finalizer))
			var log []string
			w.engine(
				cleaning("Never", passes, logged(&log, "Never", passes)),
				cleaning("A", passes, logged(&log, "A", test.cleanup)))
			result, err := w.reconcile()
			same(t, "it failed", test.fails, err != nil)
			same(t, "requeued after", test.after, result.RequeueAfter)
			same(t, "finalizers", []string{finalizer}, w.thing().Finalizers)
			w.is(condition.Ready, test.ready)
			w.takeWrites()
			_, _ = w.reconcile()
			same(t, "cleanups", []string{"A", "A"}, log)
			w.wrote()
		})
	}
}

func TestAFailureOfPostDoesNotKeepTheObject(t *testing.T) {
	w := newWorld(t, deletedThing(finalizer))
	w.engine(poster{cleaner{doing("A", passes), passes}, func(context.Context, *request) error { return errFirst }})
	if err := w.fails(); !errors.Is(err, errFirst) {
		t.Errorf("got %v", err)
	}
	isGone(w)
}

func TestOtherFinalizersKeepTheObject(t *testing.T) {
	w := newWorld(t, deletedThing(foreignFinalizer, finalizer))
	var log []string
	e := w.engine(full(&log, "A", passes, passes, nil))
	w.must()
	same(t, "finalizers", []string{foreignFinalizer}, w.thing().Finalizers)
	want := `False CleanedUp: it is being deleted, our cleanup is done, and it is kept by finalizer "` + foreignFinalizer + `", which another controller has to remove`
	w.is(condition.Ready, want)
	w.wrote("patch Thing a", "patch status of Thing a")
	for range 20 { // no hot loop: nothing is asked for, nothing is written, nothing is cleaned up again
		if got := w.must(); got.RequeueAfter != 0 {
			t.Fatalf("it is requeued after %v", got.RequeueAfter)
		}
	}
	w.wrote()
	same(t, "calls", 1, count(log, "Cleanup A"))
	t.Run("after a restart", func(t *testing.T) {
		w.engine(full(&log, "A", passes, passes, nil))
		w.must()
		same(t, "calls", 1, count(log, "Cleanup A"))
		w.wrote()
	})
	t.Run("gone at last", func(t *testing.T) {
		last := w.thing()
		w.edit(func(obj *Thing) { obj.Finalizers = nil })
		e.EventFilter().Delete(event.DeleteEvent{Object: last})
		if _, err := e.Reconcile(t.Context(), thingRequest); err != nil {
			t.Error(err)
		}
		same(t, "calls", 1, count(log, "Cleanup A"))
	})
}

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// An object that is being deleted and never had our finalizer has nothing of ours: no Do was ever
// called for it, or another client has taken the finalizer off.
func TestAnObjectWithoutOurFinalizerIsNotCleanedUp(t *testing.T) {
	w := newWorld(t, deletedThing(foreignFinalizer))
	var log []string
	w.engine(full(&log, "A", passes, passes, nil))
	w.must()
	w.must()
	same(t, "calls", []string{"Post A", "Post A"}, log)
	w.wrote("patch status of Thing a")
	want := `False Deleting: it is being deleted, and it is kept by finalizer "` + foreignFinalizer + `", which another controller has to remove`
	w.is(condition.Ready, want)
}

func TestDeletionWithoutACleaner(t *testing.T) {
	w := newWorld(t, deletedThing(foreignFinalizer))
	var log []string
	w.engine(doing("A", logged(&log, "Do", passes)))
	w.must()
	none(t, "log", log)
	same(t, "finalizers", []string{foreignFinalizer}, w.thing().Finalizers)
}

func TestTheFinalizerCantBeRemoved(t *testing.T) {
	w := newWorld(t, deletedThing(finalizer))
	w.fault = failOn("patch Thing", forbiddenError())
	var log []string
	w.engine(full(&log, "A", passes, passes, nil))
	if err := w.fails(); !strings.Contains(err.Error(), "no permission") {
		t.Errorf("got %v", err)
	}
	w.begins(condition.Ready, "False Forbidden: ")
	w.fault = nil
	w.must()
	isGone(w)
}

// What a step finds unhealthy while it cleans up does not hide that the cleanup is done: after a
// restart nothing is cleaned up again.
func TestCleanedUpIsNotHidden(t *testing.T) {
	w := newWorld(t, deletedThing(foreignFinalizer, finalizer))
	cleanups := 0
	complaint := complaining{cleaner{doing("A", passes), does(func(_ context.Context, req *request) {
		cleanups++
		req.Conditions.MarkUnhealthy("Found", condition.SeverityError, "Removed", "it was removed")
	})}}
	w.engine(complaint)
	w.must()
	w.begins(condition.Ready, "False CleanedUp: ")
	w.engine(complaint)
	w.must()
	same(t, "cleanups", 1, cleanups)
}

// complaining is a step with a Cleanup and the condition Found.
type complaining struct{ cleaner }

func (complaining) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: "Found"}}
}

// An object that has the finalizer from its creation costs no write for it.
func TestAFinalizerFromThePolicyIsAdopted(t *testing.T) {
	w := newWorld(t, newThing(finalizer))
	w.engine(cleaning("A", passes, passes))
	w.must()
	w.wrote("patch status of Thing a")
}
