// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"

	"github.com/ctrlkit/ctrlkit/step"
)

func TestTypedData(t *testing.T) {
	first, second := step.NewKey[int]("same"), step.NewKey[int]("same")
	text := step.NewKey[string]("text")
	w := newWorld(t, newThing())
	w.engine(
		doing("A", does(func(_ context.Context, req *request) {
			if _, ok := step.Lookup(req, first); ok {
				t.Error("something is there from another reconcile")
			}
			step.Put(req, first, 1)
			step.Put(req, text, "one")
			step.Put(req, text, "two")
		})),
		doing("B", does(func(_ context.Context, req *request) {
			if got, ok := step.Lookup(req, first); got != 1 || !ok {
				t.Errorf("first: got %d, %v", got, ok)
			}
			if got, ok := step.Lookup(req, second); got != 0 || ok {
				t.Errorf("a key of the same name: got %d, %v", got, ok)
			}
			if got, ok := step.Lookup(req, text); got != "two" || !ok {
				t.Errorf("text: got %q, %v", got, ok)
			}
		})),
	)
	w.must()
	w.must()
	same(t, "name of the key", "same", first.String())
}
