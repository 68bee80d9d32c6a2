// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

func TestPause(t *testing.T) {
	tests := []struct {
		name   string
		value  string
		delete bool
		want   string // of the condition; empty if it is not paused
	}{
		{"true", "true", false, `True Paused: annotation ctrlkit.dev/paused is "true": nothing is done until it is removed`},
		{"True", "True", false, `True Paused: annotation ctrlkit.dev/paused is "True": nothing is done until it is removed`},
		{"false", "false", false, ""},
		{"False", "False", false, ""},
		{"a word", "yes", false,
			`True InvalidValue: annotation ctrlkit.dev/paused is "yes", which is neither "true" nor "false": nothing is done until it is`},
		{"nothing", "", false,
			`True InvalidValue: annotation ctrlkit.dev/paused is "", which is neither "true" nor "false": nothing is done until it is`},
		{"the deletion, too", "true", true,
			`True Paused: annotation ctrlkit.dev/paused is "true": nothing is done until it is removed; the deletion waits for that, too`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newThing()
			if test.delete {
				obj = deletedThing(finalizer)
			}
			obj.Annotations = map[string]string{step.PauseAnnotation: test.value}
			w := newWorld(t, obj)
			var log []string
			w.engine(full(&log, "A", passes, passes, nil))
			w.must()
			if test.want == "" {
				if len(log) == 0 || w.conditionOf(condition.Paused) != "" {
					t.Errorf("it was left alone: calls %v, Paused %q", log, w.conditionOf(condition.Paused))
				}
				return
			}
			none(t, "log", log)
			w.wrote("patch status of Thing a")
			w.is(condition.Paused, test.want)
			if got := len(recorded[journal.Gated](w)); got != 1 || w.lastResult() != journal.ResultPaused {
				t.Errorf("the journal says %d times that it is left alone, and %q", got, w.lastResult())
			}
			same(t, "requeued after", 0, w.must().RequeueAfter)
			w.wrote()
		})
	}
}

func TestPauseKeepsTheOtherConditions(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	w.engine(keeping("A", logged(&log, "Do", failsWith(errFirst)), "Found"))
	w.fails()
	before := w.thing().Status.Conditions
	w.edit(func(obj *Thing) {
		obj.Annotations = map[string]string{step.PauseAnnotation: "true"}
		obj.Spec.Size = 3
	})
	w.must()
	for _, c := range before {
		if got, want := w.conditionOf(c.Type), describe(&Thing{Status: ThingStatus{Conditions: before}}, c.Type); got != want {
			t.Errorf("%s: got %q, want %q", c.Type, got, want)
		}
	}
	same(t, "status.observedGeneration", 1, w.thing().Status.ObservedGeneration)
	w.edit(func(obj *Thing) { obj.Annotations = nil })
	w.fails()
	w.is(condition.Paused, "")
	if got := w.thing().Status.ObservedGeneration; got != 2 || len(log) != 2 {
		t.Errorf("status.observedGeneration: got %d, want 2; calls %v", got, log)
	}
}

func TestPauseThatCantBeSaved(t *testing.T) {
	obj := newThing()
	obj.Annotations = map[string]string{step.PauseAnnotation: "true"}
	w := newWorld(t, obj)
	w.fault = failOn("patch status", errFirst)
	w.engine(doing("A", passes))
	w.fails()
	w.fault = nil
	w.must()
	if got := w.conditionOf(condition.Paused); got == "" {
		t.Error("it does not say that it is paused")
	}
}
