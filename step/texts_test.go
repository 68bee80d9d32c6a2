// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// An error whose text changes at each try makes no write at each try.
func TestNoStatusStorm(t *testing.T) {
	rings.Test(t, "takes seconds")
	t.Parallel()
	// words is a source of random words that is the same in each run of the test.
	seed := uint32(1)
	word := func() string {
		letters := make([]byte, 8)
		for i := range letters {
			seed = seed*1664525 + 1013904223
			letters[i] = 'a' + byte(seed>>24)%26
		}
		return string(letters)
	}
	texts := map[string]func(i int) string{
		"numbers": func(i int) string { return fmt.Sprintf("request %d failed after %v", i, time.Duration(i)) },
		"words":   func(int) string { return "the server says " + word() + " " + word() },
	}
	dos := map[string]func(req *request, text string) error{
		"error": func(_ *request, text string) error {
			return errors.New(text)
		},
		"condition and error": func(req *request, text string) error {
			req.Conditions.MarkUnhealthy("Found", condition.SeverityWarning, "Failing", text)
			return errors.New(text)
		},
		"several errors": func(_ *request, text string) error {
			return errors.Join(errors.New(text), errFirst)
		},
	}
	for textName, text := range texts {
		for doName, do := range dos {
			runInBubble(t, doName+" with "+textName, func(t *testing.T) {
				w := newWorld(t, newThing())
				options := w.options()
				options.Observers = nil
				i := 0
				w.engineWith(options, keeping("A", func(_ context.Context, req *request) error {
					i++
					return do(req, text(i))
				}, "Found"))
				reconciles, writes := 300, 0
				if textName == "words" && doName == "error" {
					reconciles = 10000
				}
				for range reconciles {
					w.fails()
					if len(w.writes) != writes { // from then on the cache has it; to ask the fake client each time takes its time
						writes = len(w.writes)
						w.cache[thingRequest.NamespacedName] = w.thing()
					}
					pass(10 * time.Millisecond)
				}
				if got := len(w.takeWrites()); got == 0 || got > 4 {
					t.Errorf("%d writes in %d reconciles", got, reconciles)
				}
				if got := len(w.takeEvents()); got == 0 || got > 4 {
					t.Errorf("%d events in %d reconciles", got, reconciles)
				}
			})
		}
	}
}

// What only a person can clear is written at once, so that clearing one failure shows the next, but
// not without end.
func TestHeldTextsOfTerminalFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var remaining int
		w.engine(doing("A", func(context.Context, *request) error {
			names := strings.Repeat("x", remaining) // not a number, of which changes are held
			return failure.Mark(errors.New("in the way: "+names), failure.WithClass(failure.ClassTerminal))
		}))
		written := func() bool {
			pass(time.Second)
			_, _ = w.reconcile()
			return w.conditionOf(condition.Ready) == "False TerminalError: A: in the way: "+strings.Repeat("x", remaining)
		}
		for remaining = 10; remaining > 4; remaining-- {
			if !written() {
				t.Errorf("with %d objects in the way: %s", remaining, w.conditionOf(condition.Ready))
			}
		}
		if written() {
			t.Error("a text that always changes is always written")
		}
		pass(10 * time.Minute)
		if !written() {
			t.Errorf("later: %s", w.conditionOf(condition.Ready))
		}
	})
}
