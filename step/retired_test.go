// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

func TestAFinalizerIsRetired(t *testing.T) {
	const old = "test.example.com/old"
	withRetired := func(w *world) step.Options[*Thing] {
		options := w.options()
		options.RetiredFinalizers = []string{old}
		return options
	}
	tests := []struct {
		name    string
		obj     *Thing
		cleans  bool
		want    []string // finalizers; nil if the object is gone
		writes  int      // of the metadata
		cleaned int
	}{
		{"without a Cleaner, living", newThing(foreignFinalizer, old), false, []string{foreignFinalizer}, 1, 0},
		{"without a Cleaner, being deleted", deletedThing(old), false, nil, 1, 0},
		{"without a Cleaner, kept by others", deletedThing(foreignFinalizer, old), false, []string{foreignFinalizer}, 1, 0},
		{"renamed, living", newThing(foreignFinalizer, old), true, []string{foreignFinalizer, finalizer}, 1, 0},
		{"renamed, living, and both are there", newThing(old, finalizer), true, []string{finalizer}, 1, 0},
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
			same(t, "finalizers", test.want, got, cmpopts.EquateEmpty())
			same(t, "patches of the metadata", test.writes, count(w.takeWrites(), "patch Thing a"))
			same(t, "cleanups", test.cleaned, count(log, "Cleanup A"))
			w.said()
		})
	}
	t.Run("one that is not named is hinted at", func(t *testing.T) {
		w := newWorld(t, deletedThing(finalizer))
		w.engine(doing("A", passes))
		w.must()
		if got := w.conditionOf(condition.Ready); !strings.Contains(got, "Options.RetiredFinalizers") || strings.Contains(got, "cleanup is done") {
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
