// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"time"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A Timer is when an object is to be reconciled again without an event, as its last reconcile has
// requested.
type Timer struct {
	next      track.Moment // zero for never
	failed    bool         // next is a backoff
	evaluated bool         // there was a reconcile
}

// Set notes what a reconcile has requested, at a given time. Zero requests nothing. Failed says
// that it is the backoff of a failure.
func (t *Timer) Set(now time.Time, after time.Duration, failed bool) {
	t.evaluated, t.failed, t.next = true, failed, 0
	if after > 0 {
		t.next = track.MomentOf(now.Add(after))
	}
}

// Due reports whether the requested time has come.
func (t *Timer) Due(now time.Time) bool { return !t.next.IsZero() && t.next.Until(now) <= 0 }

// Causes returns why a reconcile runs: the events that were seen, and what is known without them.
// Written is the version after our last write to the object, whose event is one of our own.
func (t *Timer) Causes(seen []Seen, written string, now time.Time) []journal.Cause {
	var causes []journal.Cause
	for _, s := range seen {
		if s.cause.Kind == journal.CauseOwnChange && s.version != "" && s.version == written {
			s.cause.Kind = journal.CauseOwnWrite
		}
		causes = journal.MergeCauses(causes, s.cause)
	}
	if t.Due(now) {
		kind := journal.CauseTimer
		if t.failed {
			kind = journal.CauseBackoff
		}
		causes = journal.MergeCauses(causes, journal.Cause{Kind: kind})
	}
	switch {
	case len(causes) > 0:
		return causes
	case !t.evaluated:
		return []journal.Cause{{Kind: journal.CauseStart, Times: 1}}
	default:
		return []journal.Cause{{Kind: journal.CauseUnknown, Times: 1}}
	}
}
