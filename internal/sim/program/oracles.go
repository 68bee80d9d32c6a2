// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// lagTime is how long a change of one object may be unknown to a reconcile of another one that
// runs.
const lagTime = time.Second

// mostRequests is how many requests a run may need that is the first one.
const mostRequests = 5_000

// newJudge returns what sees in a run what a process asks for and changes: the oracles of virtual time.
func (o *Options) newJudge(p fault.Plan, reference *judge.Reference, t *trace, c *clock) *judge.Judge {
	without := map[oracle.Name]string{}
	if o.Transitions != nil {
		without[oracle.EndsWell] = "an operator may fail where a change is a mistake"
	}
	return judge.New(judge.Options{
		Plan: p, Reference: reference, Without: without, Declare: "--by-design", Now: c.time,
		Pace: judge.Pace{
			Proof: o.Settle, Clock: o.Quiet, Poll: o.Quiet, Claim: o.Quiet, Lag: lagTime, Stale: o.Settle, Leaving: o.Settle, Requests: mostRequests,
		},
		Noticed: func(name oracle.Name, text string) int {
			entry := t.Len()
			t.Add("sim", "oracle", string(name)+": "+text)
			return entry
		},
	})
}
