// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
)

// After the Lease has expired no step begins, and the context of one that runs ends with it. A
// reconcile that does not begin is tried again: the Lease may be renewed after all.
func TestStepsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		waits := 3 * time.Second
		w := newWorld(t, newThing())
		engine := w.engine(
			doing("Waiting", does(func(ctx context.Context, _ *request) {
				addTo(&log, "waiting")
				select {
				case <-time.After(waits):
				case <-ctx.Done():
					addTo(&log, context.Cause(ctx).Error())
				}
			})),
			doing("Calling", logged(&log, "calling", passes)),
		)
		var tn tenure.Tenure
		reconcile := func(after time.Duration, steps ...string) {
			t.Helper()
			log = nil
			got, _ := engine.Reconcile(tn.Context(t.Context()), thingRequest)
			if diff := cmp.Diff(steps, log); diff != "" || got.RequeueAfter != after {
				t.Errorf("requeued after %v, want %v; steps %s", got.RequeueAfter, after, diff)
			}
		}
		tn.Renew(time.Now(), 15*time.Second)
		reconcile(0, "waiting", "calling")
		waits = time.Hour
		reconcile(0, "waiting", "the Lease of this process has expired")
		reconcile(time.Second)
		waits = time.Second
		tn.Renew(time.Now(), 15*time.Second)
		reconcile(0, "waiting", "calling")
	})
}
