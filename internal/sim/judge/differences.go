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

// counts says which differences an oracle is about.
type counts func(want snapshot.Snapshot, d oracle.Difference) bool

// differencesAt returns those of a world at a checkpoint, from 0, from that of the run without faults.
func differencesAt(l *ledger, i int, got snapshot.Snapshot, is counts) []oracle.Difference {
	want := l.reference.Checkpoints[i]
	return slices.DeleteFunc(want.Diff(got, l.reference.Mask), func(d oracle.Difference) bool {
		return !is(want, d) || isLeaving(want, d) || deniesWhenDone(want, got, d) || l.comesByTheClock(i, got, d)
	})
}

// IsAsWanted reports whether the world at a checkpoint, from 0, is that of the run without faults.
func (j *Judge) IsAsWanted(i int, got snapshot.Snapshot) bool {
	return len(differencesAt(j.ledger, i, got, isPresent(j.ledger))) == 0
}

// isPresent returns what reports whether a difference is not only history.
func isPresent(l *ledger) counts {
	return func(_ snapshot.Snapshot, d oracle.Difference) bool { return !l.isHistory(d) }
}

// compare reports the first checkpoint at which the world differs from that of the run without
// faults, in what counts. One at which the world is nil is not compared.
func (l *ledger) compare(e End, text string, is counts, v violate) {
	if l.reference == nil || l.aborted {
		return
	}
	for i, got := range e.Checkpoints[:min(len(e.Checkpoints), len(l.reference.Checkpoints))] {
		if got == nil {
			continue
		}
		found := differences{i + 1, differencesAt(l, i, got, is)}
		if len(found.list) == 0 {
			continue
		}
		var lines []string
		for _, d := range found.list {
			lines = append(lines, d.String())
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
