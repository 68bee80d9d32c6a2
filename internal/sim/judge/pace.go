// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import "time"

// A Pace says how long things take.
type Pace struct {
	// Proof is how long what the operator does after a resync or a restart counts as caused by it.
	// What comes later is caused by a timer, such as the schedule of a CronJob.
	Proof time.Duration

	// Clock is how long after the last change of others the operator does something by the clock,
	// and Poll how long after the last change of all it writes by the clock.
	Clock, Poll time.Duration

	// Claim is how long the operator may not work any more after it has claimed success. It is
	// short so that the next period of periodic work does not count.
	Claim time.Duration

	// Lag is how long a change of another object may be unknown to a reconcile that is running, and
	// Stale how long a cache may be stale.
	Lag, Stale time.Duration

	// Leaving is how long the deletion of an object may take without anything that happens for it.
	Leaving time.Duration

	// Requests is how many a run may need that there is nothing to compare with.
	Requests int
}

// virtual is the pace of virtual time.
var virtual = Pace{
	Proof: 10 * time.Second, Clock: 10 * time.Second, Poll: 2 * time.Minute, Claim: 5 * time.Second, Lag: 100 * time.Millisecond, Stale: 90 * time.Second, Leaving: 30 * time.Second, Requests: 2000,
}
