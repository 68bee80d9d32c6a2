// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A step that takes long is reported while it runs, and canceled when its time is over.
func TestStepTimeout(t *testing.T) {
	const early, late = "StepLate: Do of A has been running for 1m0s; it is canceled after 5m0s",
		"StepLate: Do of A has been running for 5m1s, and ignores that it was canceled after 5m0s"
	const over = "TemporaryError: A: its time of 5m0s (Options.StepTimeout) is over: context deadline exceeded"
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		takes   time.Duration // with deaf: whatever its context says
		deaf    bool
		reports int
		events  []string
		ready   string
	}{
		{name: "half a minute", takes: 30 * time.Second, ready: "True Ready"},
		{name: "two minutes", takes: 2 * time.Minute, reports: 1, events: []string{early}, ready: "True Ready"},
		{name: "as long as it may", timeout: time.Hour, takes: 10 * time.Minute, ready: "True Ready"},
		{name: "a call that hangs", takes: time.Hour, reports: 1, events: []string{early, over}, ready: "False " + over},
		{name: "a call that ignores its context", takes: time.Hour, deaf: true, reports: 2, events: []string{early, late}, ready: "True Ready"},
	} {
		runInBubble(t, tt.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			options := w.options()
			options.StepTimeout = tt.timeout
			w.engineWith(options, doing("A", func(ctx context.Context, _ *request) error {
				if tt.deaf {
					ctx = context.WithoutCancel(ctx)
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(tt.takes):
					return nil
				}
			}))
			_, _ = w.reconcile()
			same(t, "events", tt.events, w.takeEvents())
			w.is(condition.Ready, tt.ready)
			same(t, "entries in the journal", tt.reports, len(recorded[journal.StepLate](w)))
		})
	}
}
