// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/minted"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
)

// mostSteps is how often names are learned from two runs: what has the name of another object in it
// is alike in both only when that is called the same.
const mostSteps = 4

// learnNames learns which names differ between this run and another one without faults, and returns
// the checkpoints of the other one with the names of this one.
func (r *Reference) learnNames(other []snapshot.Snapshot) []snapshot.Snapshot {
	other = renamed(other, r.minted)
	for range mostSteps {
		var names minted.Names
		for i := range min(len(r.Checkpoints), len(other)) {
			names = append(names, minted.Learn(r.Checkpoints[i].Texts(), other[i].Texts())...)
		}
		if len(names) == 0 {
			break
		}
		r.Mint(names)
		other = renamed(other, names)
	}
	return other
}

// renamed returns checkpoints with other names.
func renamed(checkpoints []snapshot.Snapshot, names minted.Names) []snapshot.Snapshot {
	all := make([]snapshot.Snapshot, len(checkpoints))
	for i, s := range checkpoints {
		all[i] = s
		if r := names.Replacer(slices.Collect(maps.Keys(s))); r != nil {
			all[i] = s.Renamed(r)
		}
	}
	return all
}

// Rename returns a world of a run that is not judged by this one, with its names.
func (r *Reference) Rename(s snapshot.Snapshot) snapshot.Snapshot {
	if r == nil {
		return s
	}
	return renamed([]snapshot.Snapshot{s}, r.minted)[0]
}

// Mint makes known which names differ between two runs: those of this one are replaced, and those of
// the runs that are judged by it.
func (r *Reference) Mint(names minted.Names) {
	r.minted = append(r.minted, names...)
	for i, s := range renamed(r.Checkpoints, names) {
		r.Checkpoints[i] = s
	}
	replacer := names.Replacer(slices.Concat(slices.Collect(maps.Keys(r.created)), slices.Collect(maps.Keys(r.deleted)), slices.Collect(maps.Keys(r.conditions))))
	if replacer == nil {
		return
	}
	r.created, r.deleted, r.externals = rekeyed(r.created, replacer), rekeyed(r.deleted, replacer), rekeyed(r.externals, replacer)
	for _, m := range []*map[string]bool{&r.conditions, &r.said} {
		all := map[string]bool{}
		for key, value := range *m {
			all[replacer.Replace(key)] = all[replacer.Replace(key)] || value
		}
		*m = all
	}
}

func rekeyed(m map[string]int, names *strings.Replacer) map[string]int {
	all := map[string]int{}
	for key, n := range m {
		all[names.Replace(key)] += n
	}
	return all
}

// mintedPart returns the part of the name of an object that differs between runs.
func (r *Reference) mintedPart(c apiserver.Change) (string, bool) {
	if r == nil {
		return "", false
	}
	return r.minted.Part(cluster.ObjectName(c.Resource, c.Namespace, c.Name))
}

// withoutMinted returns a name without the parts that differ between runs, which are among what was
// generated: hashes of UIDs, and those of templates, which are in the names of their Pods.
func withoutMinted(name string, generated map[string]string) string {
	for token, canonical := range generated {
		if canonical == "*" || canonical == hashText {
			name = strings.ReplaceAll(name, token, canonical)
		}
	}
	return name
}
