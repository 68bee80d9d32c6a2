// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"

	"github.com/ctrlkit/ctrlkit/sim/internal/snapshot"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// InjectedPanic is the value of panics that faults cause in the operator.
const InjectedPanic = "sim: injected panic"

// noPanic demands that the operator does not panic where controller-runtime recovers. A panic
// anywhere else ends the process that runs the plan, which is reported by who has started it.
type noPanic struct{}

func (noPanic) AtEnd(_ *ledger, e End, v violate) {
	for _, line := range e.Logs {
		if strings.Contains(line, "[recovered]") && !strings.Contains(line, InjectedPanic) {
			v("the operator panicked, and controller-runtime recovered it: " + line)
		}
	}
}

// sameEnd demands that the world is, at each checkpoint, what it is without the fault. What is only
// history does not count: see [sameHistory].
type sameEnd struct{}

func (sameEnd) AtEnd(l *ledger, e End, v violate) {
	l.compare(e, "the world is not what it is without the fault", func(d oracle.Difference) bool { return !l.isHistory(d) }, v)
}

// compare reports the first checkpoint at which the world differs from that of the run without
// faults, in what counts.
func (l *ledger) compare(e End, text string, counts func(oracle.Difference) bool, v violate) {
	if l.reference == nil || l.aborted {
		return
	}
	for i, want := range l.reference.Checkpoints {
		if i >= len(e.Checkpoints) {
			return
		}
		var differences []oracle.Difference
		var lines []string
		for _, d := range want.Diff(e.Checkpoints[i], l.reference.Mask) {
			if counts(d) && !isLeaving(want, d) && !l.comesByTheClock(i, d) {
				differences, lines = append(differences, d), append(lines, d.String())
			}
		}
		if len(differences) == 0 {
			continue
		}
		v(fmt.Sprintf("at checkpoint %d of %d, %s:\n  %s", i+1, len(l.reference.Checkpoints), text, strings.Join(lines, "\n  ")), differences...)
		return // what differs later may follow from it
	}
}

// isLeaving reports whether a difference is in the status of an object that is being deleted, which
// an operator that has done its part of the deletion no longer writes.
func isLeaving(want snapshot.Snapshot, d oracle.Difference) bool {
	return strings.HasPrefix(d.Path, ".status.") && want[d.Thing][".metadata.deletionTimestamp"] != ""
}
