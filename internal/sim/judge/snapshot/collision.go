// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"slices"
	"strconv"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/minted"
)

// collisionPath is where a controller records how often a name that it computes was taken: it
// computes another one with the count. The controllers of Deployments, StatefulSets and DaemonSets
// do so, and those written after them.
const collisionPath = ".status.collisionCount"

// evadedCollisions returns both worlds with one name for the child that has another name in got
// because the owner has met an object of a stranger: the owner has counted that collision, and the
// child differs in a hash of its name and in nothing else.
func evadedCollisions(want, got Snapshot) (Snapshot, Snapshot) {
	owners := map[string]bool{}
	for thing, fields := range got {
		if collisions(fields) > collisions(want[thing]) {
			owners[thing] = true
		}
	}
	if len(owners) == 0 {
		return want, got
	}
	names := minted.Learn(want.controlledBy(owners).Texts(), got.controlledBy(owners).Texts())
	replacer := names.Replacer(slices.AppendSeq(slices.Collect(maps.Keys(want)), maps.Keys(got)))
	if replacer == nil {
		return want, got
	}
	return want.Renamed(replacer), got.Renamed(replacer)
}

func collisions(fields map[string]string) int {
	n, err := strconv.Atoi(fields[collisionPath])
	if err != nil {
		return 0 // no collision so far
	}
	return n
}

// controlledBy returns the children of owners.
func (s Snapshot) controlledBy(owners map[string]bool) Snapshot {
	children := Snapshot{}
	for thing, fields := range s {
		if owners[ownerOf(fields)] {
			children[thing] = fields
		}
	}
	return children
}
