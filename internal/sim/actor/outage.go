// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
)

// Outages are the times in which external systems do not answer.
type Outages struct {
	time  Time
	notes Notes
	trace *trace.Trace
	open  []*external.Blocked
}

// Begin begins an outage of a system. It ends after d, or when everything is idle if d is 0.
func (o *Outages) Begin(system string, d time.Duration) {
	outage := &external.Blocked{System: system}
	o.open = append(o.open, outage)
	end := func() {
		o.open = slices.DeleteFunc(o.open, func(other *external.Blocked) bool { return other == outage })
	}
	if d > 0 {
		o.time.After(d, func() {
			end()
			o.time.SlowDown(d)
		})
		return
	}
	whenIdle(o.time, o.trace, "the outage of "+system+" ends", func() {
		o.notes.Stuck(system+" does not answer", o.Blocked())
		end()
		o.time.SlowDown(o.time.Quiet())
	})
}

// Stops reports whether an outage stops a call, and records for which object it was made.
func (o *Outages) Stops(c external.Call) bool {
	for _, outage := range o.open {
		if outage.System == c.System {
			outage.Owners = append(outage.Owners, c.Owner)
			return true
		}
	}
	return false
}

// Blocked returns what the outages of now have stopped.
func (o *Outages) Blocked() []external.Blocked {
	list := make([]external.Blocked, len(o.open))
	for i, outage := range o.open {
		list[i] = external.Blocked{System: outage.System, Owners: append([]types.UID(nil), outage.Owners...)}
	}
	return list
}
