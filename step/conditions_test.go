// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// A failure that counts is written every ten minutes at most, and not at all before.
func TestMessagesWithANumberThatChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		i := 0
		w.engine(doing("A", func(context.Context, *request) error {
			i++
			return fmt.Errorf("request %d has failed", i)
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
