// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"

	"github.com/ctrlkit/ctrlkit/sim/internal/snapshot"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// compare reports the first checkpoint at which the world differs from that of the run without
// faults, in what counts.
func (l *ledger) compare(e End, text string, counts func(want snapshot.Snapshot, d oracle.Difference) bool, v violate) {
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
			if counts(want, d) && !isLeaving(want, d) && !l.comesByTheClock(i, d) {
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
