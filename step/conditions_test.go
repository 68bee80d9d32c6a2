// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

// A condition that was healthy is unknown when its step fails, and healthy again when that
// passes, also if it does not set it.
func TestConditionsOfAStepThatFails(t *testing.T) {
	w := newWorld(t, newThing())
	var err error
	sets := true
	w.engine(keeping("Write", func(_ context.Context, req *request) (ctrl.Result, error) {
		if sets {
			req.Conditions.MarkHealthy("OutputReady", "OutputWritten", "")
		}
		return ctrl.Result{}, err
	}, "OutputReady"))
	w.must()
	want := func(output, ready string) {
		t.Helper()
		w.is("OutputReady", output)
		w.is(condition.Ready, ready)
	}
	want("True OutputWritten", "True Ready")

	sets, err = false, forbiddenError()
	w.fails()
	want("Unknown LastTryFailed: "+err.Error(), "False Forbidden: Write: "+err.Error())
	w.takeWrites()
	w.fails()
	w.wrote()
	err = nil
	w.must()
	want("True LastTryPassed", "True Ready")
}

// What a step says itself before it fails stays.
func TestConditionsThatAStepSetsBeforeItFails(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(keeping("Write", func(_ context.Context, req *request) (ctrl.Result, error) {
		req.Conditions.MarkHealthy("Found", "Found", "")
		req.Conditions.MarkUnhealthy("OutputReady", condition.SeverityError, "Taken", "it is taken")
		return ctrl.Result{}, errFirst
	}, "Found", "OutputReady"))
	w.fails()
	if found, output := w.conditionOf("Found"), w.conditionOf("OutputReady"); found != "True Found" || output != "False Taken: it is taken" {
		t.Errorf("got %q and %q", found, output)
	}
}

// While its step waits, or is not reached, a condition stays as it was, and about the generation
// that it was about.
func TestConditionsOfAStepThatWaits(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second func() (ctrl.Result, error)
		want          map[string]int64 // observed generations
	}{
		{"the second waits", ctrlkit.NoRequeue, func() (ctrl.Result, error) { return ctrlkit.WaitFor("x") }, map[string]int64{"A": 2, "B": 1}},
		{"the first waits", func() (ctrl.Result, error) { return ctrlkit.WaitFor("x") }, ctrlkit.NoRequeue, map[string]int64{"A": 1, "B": 1}},
		{"both pass", ctrlkit.NoRequeue, ctrlkit.NoRequeue, map[string]int64{"A": 2, "B": 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			settled := false
			do := func(kind string, then func() (ctrl.Result, error)) step.Step[*Thing] {
				return keeping("Keep "+kind, func(_ context.Context, req *request) (ctrl.Result, error) {
					if !settled {
						req.Conditions.MarkHealthy(kind, "Fine", "")
						return ctrlkit.NoRequeue()
					}
					return then()
				}, kind)
			}
			w.engine(do("A", tt.first), do("B", tt.second))
			w.must()
			settled = true
			w.edit(func(obj *Thing) { obj.Spec.Size++ })
			w.must()
			for kind, want := range tt.want {
				c := meta.FindStatusCondition(w.thing().Status.Conditions, kind)
				same(t, "Status", "True", c.Status)
				same(t, "ObservedGeneration", want, c.ObservedGeneration)
			}
		})
	}
}

// A failure of something else comes through, also if only a number in a name or an address
// distinguishes the two.
func TestMessagesOfAnotherFailure(t *testing.T) {
	for _, tt := range []struct {
		name, before, after string
		at                  time.Duration // how long after the failure has begun it becomes another
		within              time.Duration
	}{
		{"another of several", "db-1 refuses the password", "db-2 refuses the password", time.Hour, 0},
		{"another address", "10.0.0.1 refuses the password", "10.9.9.9 refuses the password", time.Hour, 0},
		{"another of several at once", "db-1 at 10.0.0.1 refuses the password", "db-2 at 10.9.9.9 refuses the password", time.Minute, 10 * time.Minute},
		{"another number", "volume 7 is full", "volume 9 is full", time.Hour, 10 * time.Minute},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			text := tt.before
			w.engine(doing("A", func(context.Context, *request) (ctrl.Result, error) {
				return ctrl.Result{}, errors.New(text)
			}))
			w.fails()
			pass(tt.at)
			text = tt.after
			w.fails()
			pass(tt.within)
			w.fails()
			if got, want := w.conditionOf(condition.Ready), "False TemporaryError: A: "+tt.after; got != want {
				t.Errorf("Ready: got %q, want %q", got, want)
			}
		})
	}
}

// A failure that counts is written every ten minutes at most, and not at all before.
func TestMessagesWithANumberThatChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		i := 0
		w.engine(doing("A", func(context.Context, *request) (ctrl.Result, error) {
			i++
			return ctrl.Result{}, fmt.Errorf("request %d has failed", i)
		}))
		w.fails()
		w.takeWrites()
		writes := 0
		for range 60 {
			pass(time.Minute)
			w.fails()
			writes += len(w.takeWrites())
		}
		if writes == 0 || writes > 6 {
			t.Errorf("%d writes in an hour, want one every ten minutes", writes)
		}
	})
}

// A Post may wait: the object is reconciled again, and nothing has failed. It does not keep an
// object that is being deleted.
func TestPostThatWaits(t *testing.T) {
	post := func(context.Context, *request) error {
		_, err := ctrlkit.PollFor("the replicas to drain", 10*time.Second)
		return err
	}
	w := newWorld(t, newThing())
	w.engine(posting{doing("A", passes), post})
	same(t, "requeued after", 10*time.Second, w.must().RequeueAfter)
	if got, want := w.conditionOf(condition.Ready), "False Waiting: waits for the replicas to drain"; got != want {
		t.Errorf("Ready: got %q, want %q", got, want)
	}
	w = newWorld(t, deletedThing(finalizer))
	w.engine(poster{cleaner{doing("A", passes), passes}, post})
	w.must()
	isGone(w)
}
