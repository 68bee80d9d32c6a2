// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/internal/external"
)

func (w *world) stops(system string, owner types.UID) bool {
	return w.Stops(external.Call{System: system, Owner: owner})
}

// An outage stops the calls of its system for its time, and of no other system.
func TestOutageForATime(t *testing.T) {
	inWorld(t, func(w *world) {
		others := w.unchanged("")
		w.equal("a call before", false, w.stops("buckets", "1"))
		w.Begin("buckets", 10*time.Minute)
		w.equal("a call then", true, w.stops("buckets", "1"))
		w.equal("a call of another system", false, w.stops("queues", "1"))
		w.pass(10*time.Minute - time.Nanosecond)
		w.equal("a call just before its end", true, w.stops("buckets", "2"))
		w.equal("blocked", []external.Blocked{{System: "buckets", Owners: []types.UID{"1", "2"}}}, w.Blocked())
		w.settle()
		w.noted()
		w.pass(time.Nanosecond)
		w.equal("a call at its end", false, w.stops("buckets", "1"))
		w.equal("blocked at its end", 0, len(w.Blocked()))
		w.noted("slow down by 10m0s")
		others()
	})
}

// An outage without a time lasts until everything is idle. Those that it has stopped are reported
// before it ends.
func TestOutageUntilIdle(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Begin("buckets", 0)
		w.equal("a call then", true, w.stops("buckets", "1"))
		w.pass(24 * time.Hour)
		w.equal("a call later", true, w.stops("buckets", "1"))
		w.noted()
		w.settle()
		w.equal("a call when idle", false, w.stops("buckets", "1"))
		w.noted("stuck: buckets does not answer, blocked [{buckets [1 1]}]", "slow down by 1m0s")
		w.settle()
		w.noted()
	})
}

// Outages that overlap end each at its own time.
func TestOutagesOverlap(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Begin("buckets", time.Minute)
		w.Begin("queues", 2*time.Minute)
		w.Begin("buckets", 3*time.Minute)
		var stopped [][2]bool
		for range 4 {
			stopped = append(stopped, [2]bool{w.stops("buckets", "1"), w.stops("queues", "1")})
			w.pass(time.Minute)
		}
		w.equal("stopped", [][2]bool{{true, true}, {true, true}, {true, false}, {false, false}}, stopped)
	})
}

// What is reported of outages is a copy: calls that come later do not change it.
func TestBlockedIsACopy(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Begin("buckets", 0)
		w.equal("blocked by nothing", []external.Blocked{{System: "buckets"}}, w.Blocked())
		w.stops("buckets", "1")
		before := w.Blocked()
		before[0].Owners[0] = "3"
		w.stops("buckets", "2")
		w.equal("blocked", []external.Blocked{{System: "buckets", Owners: []types.UID{"1", "2"}}}, w.Blocked())
		w.equal("blocked before", 1, len(before[0].Owners))
	})
}
