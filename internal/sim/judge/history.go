// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// sameHistory demands that what a status records of the past is what it is without the fault. An
// operator need not keep that over a fault, so this is the mildest of differences. It can't keep it
// over one that takes it away: a new object has no history, and nothing has that of a status that
// others have removed.
type sameHistory struct{}

func (sameHistory) AtEnd(l *ledger, e End, v violate) {
	l.compare(e, "statuses record another history than without the fault", func(want snapshot.Snapshot, d oracle.Difference) bool {
		return l.isHistory(d) && !isZero(d) && !isFalse(want, d) && !l.hasForgotten(d.Thing) && !(l.occupies && countsCollisions(d))
	}, v)
}

// isZero reports whether a counter is zero in one world and absent in the other one.
func isZero(d oracle.Difference) bool { return d.Want+d.Got == "0" }

// countsCollisions reports whether a difference is in a counter of names that were taken. It records
// the fault that takes one.
func countsCollisions(d oracle.Difference) bool { return strings.HasSuffix(d.Path, ".collisionCount") }

// isFalse reports whether a difference is a condition that says only that something is not so, as no
// condition does.
func isFalse(want snapshot.Snapshot, d oracle.Difference) bool {
	kind, ok := conditionOf(d)
	return ok && want[d.Thing][conditionsPath+kind+"].status"] == "False"
}

// hasForgotten reports whether others have taken the history of an object, or of one that owns it:
// they have deleted it, so that the one that is there now has a history of its own, or have removed
// its status. Nothing could restore the former history.
func (l *ledger) hasForgotten(thing string) bool {
	thing, _, _ = strings.Cut(thing, " #")
	for uid, canonical := range l.uids {
		if canonical == thing && l.lostHistory(uid) {
			return true
		}
	}
	return false
}

func (l *ledger) lostHistory(uid types.UID) bool {
	return l.disturbed[uid] || l.wiped[uid] || slices.ContainsFunc(l.owners[uid], l.lostHistory)
}

// A difference is history if nothing in the world says what the field should be, so that an
// operator that computes its status from the world can't restore it:
//
//   - a counter in a status: how often something was restarted, tried or has failed;
//   - a time in a status that one of the worlds does not have: when something happened as the last;
//   - a condition that the object does not have from the beginning, without the fault, and does not
//     have after it: it was set by something that happened in between;
//   - a counter in a label or annotation of an object that has forgotten its own, or of its children.
//
// Everything else in a status is something that users read, and that must not depend on the past:
// a selector, a phase, a number of replicas, a condition that is there from the beginning.
func (l *ledger) isHistory(d oracle.Difference) bool {
	switch {
	case !strings.HasPrefix(d.Path, ".status."):
		// Children may have a counter of their owner in labels and annotations.
		return isMetadataCounter(d) && l.hasForgotten(d.Thing)
	case strings.HasPrefix(d.Path, conditionsPath):
		return l.isPastCondition(d)
	}
	return isRecord(d)
}

// isRecord reports whether a difference is in a counter of a status, or in a time that only one of
// the worlds has.
func isRecord(d oracle.Difference) bool {
	if !strings.HasPrefix(d.Path, ".status.") || strings.HasPrefix(d.Path, conditionsPath) {
		return false
	}
	field := d.Path[strings.LastIndexByte(d.Path, '.')+1:]
	switch {
	case d.Want == "" && d.Got == timeText, d.Got == "" && d.Want == timeText:
		return true
	case isNumber(d.Want) && isNumber(d.Got):
		return counterName.MatchString(field)
	}
	return false
}

const conditionsPath = ".status.conditions["

// isMetadataCounter reports whether a difference is in a label or annotation that counts.
func isMetadataCounter(d oracle.Difference) bool {
	metadata := strings.Contains(d.Path, "metadata.labels.") || strings.Contains(d.Path, "metadata.annotations.")
	return metadata && isNumber(d.Want) && isNumber(d.Got) && counterName.MatchString(d.Path[strings.LastIndexAny(d.Path, "./")+1:])
}

// timeText is what snapshots have for times.
const timeText = "<time>"

// counterName matches names of fields that count what has happened. Fields that count what there
// is, such as readyReplicas, do not match.
var counterName = regexp.MustCompile(`(?i)(restarts?|retr(y|ies)|attempts?|tries|transitions|rollouts?|collision|revision)(count|number)?(towards[a-z]+)?$|^(restart|retry|attempt|failure|error|collision|reconcile|update|transition)s?count$|^(re)?(tried|started|synced)$|^failures$`)

// isNumber reports whether a text is a number, or nothing, which counters begin with.
func isNumber(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil || text == ""
}

// isPastCondition reports whether a difference is a condition that was set by something that
// happened between the beginning and now.
func (l *ledger) isPastCondition(d oracle.Difference) bool {
	kind, ok := conditionOf(d)
	if !ok || d.Got != "" || !l.addsWork {
		return false
	}
	for _, checkpoint := range l.reference.Checkpoints {
		if fields, there := checkpoint[d.Thing]; there {
			_, fromTheBeginning := fields[conditionsPath+kind+"].type"]
			return !fromTheBeginning
		}
	}
	return false
}
