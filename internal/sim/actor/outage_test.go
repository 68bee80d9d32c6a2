// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// What is reported of outages is a copy: calls that come later do not change it.
func TestBlockedIsACopy(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Begin("buckets", 0)
		w.Stops(external.Call{System: "buckets", Owner: "1"})
		before := w.Blocked()
		before[0].Owners[0] = "3"
		w.Stops(external.Call{System: "buckets", Owner: "2"})
		if now := w.Blocked(); len(before[0].Owners) != 1 || len(now[0].Owners) != 2 || now[0].Owners[0] != "1" {
			t.Errorf("before %v, now %v", before, now)
		}
	})
}
