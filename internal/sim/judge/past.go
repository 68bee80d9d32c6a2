// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Past returns what the oracles know of a run so far, beside the present world, that may decide
// what they say about what comes: lines without UIDs and times, in a fixed order. Two runs of the
// same past whose worlds are the same are judged in the same way from now on.
func (j *Judge) Past() []string {
	l := j.ledger
	list := []string{fmt.Sprint("stage ", l.stage, l.addsWork, l.vanishes, l.replaces, l.honest, l.users, inTime(l))}
	for _, name := range slices.Sorted(maps.Keys(l.created)) {
		list = append(list, fmt.Sprint("created ", name, l.created[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(l.deleted)) {
		list = append(list, fmt.Sprint("deleted ", name, l.deleted[name]))
	}
	for _, what := range slices.Sorted(maps.Keys(l.slots)) {
		list = append(list, fmt.Sprint("late ", what, l.slots[what].late))
	}
	for _, what := range slices.Sorted(maps.Keys(l.said)) {
		list = append(list, "said "+what)
	}
	for _, kind := range slices.Sorted(maps.Keys(l.reconciled.kinds)) {
		list = append(list, "reconciled "+kind)
	}
	var known []string
	for uid, name := range l.uids {
		known = append(known, knownOf(l, uid, name))
	}
	slices.Sort(known)
	return append(list, known...)
}

// inTime reports whether the run came to its last checkpoint when the run without faults did.
func inTime(l *ledger) bool {
	n := len(l.times)
	return l.reference != nil && n > 0 && n <= len(l.reference.times) && l.times[n-1] == l.reference.times[n-1]
}

// knownOf returns what is known of an object.
func knownOf(l *ledger, uid types.UID, name string) string {
	_, live := l.live[uid]
	text := fmt.Sprint("object ", name, live, l.made[uid], l.disturbed[uid], l.wiped[uid], slices.Sorted(maps.Keys(l.held[uid])))
	for _, system := range slices.Sorted(maps.Keys(l.systems)) {
		text += fmt.Sprint(" ", system, l.systems[system].Created(uid))
	}
	return text
}
