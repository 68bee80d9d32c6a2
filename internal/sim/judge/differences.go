// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
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
		found := differences{checkpoint: i + 1}
		var lines []string
		for _, d := range want.Diff(e.Checkpoints[i], l.reference.Mask) {
			if counts(want, d) && !isLeaving(want, d) && !deniesWhenDone(want, e.Checkpoints[i], d) && !l.comesByTheClock(i, e.Checkpoints[i], d) {
				found.list, lines = append(found.list, d), append(lines, d.String())
			}
		}
		if len(found.list) == 0 {
			continue
		}
		v(fmt.Sprintf("at checkpoint %d of %d, %s:\n  %s", found.checkpoint, len(l.reference.Checkpoints), text, strings.Join(lines, "\n  ")), found)
		return // what differs later may follow from it
	}
}

// Between returns what counts of the differences between a world and another one, which is another
// history: not what a status counts, and nothing in one that says only that something is over.
func Between(want, got snapshot.Snapshot, mask map[string]bool) []oracle.Difference {
	return slices.DeleteFunc(want.Diff(got, mask), func(d oracle.Difference) bool {
		return isLeaving(want, d) || deniesWhenDone(want, got, d) || isRecord(d)
	})
}

// isLeaving reports whether a difference is in the status of an object that is being deleted, which
// an operator that has done its part of the deletion no longer writes.
func isLeaving(want snapshot.Snapshot, d oracle.Difference) bool {
	return strings.HasPrefix(d.Path, ".status.") && want[d.Thing][".metadata.deletionTimestamp"] != ""
}

// conditionOf returns the type of the condition that a difference is in, and whether it is in one.
func conditionOf(d oracle.Difference) (kind string, ok bool) {
	rest, ok := strings.CutPrefix(d.Path, conditionsPath)
	kind, _, _ = strings.Cut(rest, "]")
	return kind, ok
}

// deniesWhenDone reports whether a difference is a condition that only one of the worlds has, and
// that is False there, of an object that is Ready or Available in both. Such a condition says that
// something is over which happened in between, and is not set if the operator did not see it.
func deniesWhenDone(want, got snapshot.Snapshot, d oracle.Difference) bool {
	kind, ok := conditionOf(d)
	if !ok {
		return false
	}
	status := func(s snapshot.Snapshot, kind string) string { return s[d.Thing][conditionsPath+kind+"].status"] }
	done := func(kind string) bool { return status(want, kind) == "True" && status(got, kind) == "True" }
	return (done("Ready") || done("Available")) && status(want, kind)+status(got, kind) == "False"
}
