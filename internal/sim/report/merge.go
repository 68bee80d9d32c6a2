// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// Merge returns one document of several. Shards of the same simulation become one simulation, as if
// one machine had run them all; it is an error if a shard, or a simulation that is not a shard, is
// there twice.
func Merge(documents ...*Document) (*Document, error) {
	merged := &Document{Version: Version}
	for _, d := range documents {
		for _, s := range d.Simulations {
			i := slices.IndexFunc(merged.Simulations, func(other Simulation) bool { return other.name() == s.name() })
			if i < 0 {
				merged.Simulations = append(merged.Simulations, s)
				continue
			}
			whole, err := merged.Simulations[i].add(s)
			if err != nil {
				return nil, err
			}
			merged.Simulations[i] = whole
		}
	}
	for i := range merged.Simulations {
		if s := &merged.Simulations[i]; complete(s.Shards) {
			s.Shards = nil
		}
		merged.Simulations[i].Arrange()
	}
	slices.SortStableFunc(merged.Simulations, func(a, b Simulation) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test), cmp.Compare(a.Number, b.Number))
	})
	return merged, nil
}

// name returns what identifies a simulation.
func (s Simulation) name() string {
	return s.Package + " " + s.Test + " " + strconv.Itoa(s.Number)
}

// Title returns the name of the simulation for people.
func (s Simulation) Title() string {
	if s.Number > 1 {
		return s.Test + " #" + strconv.Itoa(s.Number)
	}
	return s.Test
}

// add returns the simulation together with other shards of it.
func (s Simulation) add(other Simulation) (Simulation, error) {
	if len(s.Shards) == 0 || len(other.Shards) == 0 {
		return s, fmt.Errorf("%s of %s is there twice, and not as shards of one run", s.Title(), s.Package)
	}
	for _, shard := range other.Shards {
		if slices.Contains(s.Shards, shard) {
			return s, fmt.Errorf("shard %s of %s of %s is there twice", shard, s.Title(), s.Package)
		}
		if of(shard) != of(s.Shards[0]) {
			return s, fmt.Errorf("%s of %s is split in different ways: shards %s and %s", s.Title(), s.Package, s.Shards[0], shard)
		}
	}
	s.Shards = append(slices.Clone(s.Shards), other.Shards...)
	slices.SortFunc(s.Shards, func(a, b string) int { return cmp.Compare(index(a), index(b)) })
	s.Stopped = cmp.Or(s.Stopped, other.Stopped)
	s.Seconds += other.Seconds
	s.Requests += other.Requests
	s.Plans.Total += other.Plans.Total
	s.Plans.Run += other.Plans.Run
	s.Plans.Singles += other.Plans.Singles
	s.Plans.Pairs += other.Plans.Pairs
	s.Plans.Swarms += other.Plans.Swarms
	s.Plans.Changes += other.Plans.Changes
	s.Plans.Bad += other.Plans.Bad
	s.Plans.Missed += other.Plans.Missed
	s.Plans.Joined += other.Plans.Joined
	s.Plans.NotRun = addNotRun(s.Plans.NotRun, other.Plans.NotRun)
	s.Violated = addCounts(s.Violated, other.Violated)
	s.Findings = addFindings(s.Findings, other.Findings)
	if len(s.Needs)+len(other.Needs) > 0 {
		s.Needs = permission.Merge(s.Needs, other.Needs)
	}
	return s, nil
}

// addNotRun adds what was not run of two shards. A kind of which a shard has run all counts with
// those that the other has.
func addNotRun(a, b []NotRun) []NotRun {
	var list []NotRun
	for _, n := range slices.Concat(a, b) {
		i := slices.IndexFunc(list, func(other NotRun) bool { return other.Kind == n.Kind })
		if i < 0 {
			list = append(list, n)
			continue
		}
		list[i].Plans += n.Plans
		list[i].Total += n.Total
	}
	SortNotRun(list)
	return list
}

// SortNotRun sorts a list by the number of plans, the largest first.
func SortNotRun(list []NotRun) {
	slices.SortFunc(list, func(a, b NotRun) int { return cmp.Or(cmp.Compare(b.Plans, a.Plans), cmp.Compare(a.Kind, b.Kind)) })
}

func addCounts(a, b []Count) []Count {
	sums := map[oracle.Name]int{}
	for _, c := range slices.Concat(a, b) {
		sums[c.Oracle] += c.Plans
	}
	return counts(sums)
}

// counts returns sums ordered by the names of the oracles.
func counts(sums map[oracle.Name]int) []Count {
	var list []Count
	for name, plans := range sums {
		list = append(list, Count{name, plans})
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Compare(a.Oracle, b.Oracle) })
	return list
}

func addFindings(a, b []Finding) []Finding {
	list := slices.Clone(a)
	for _, f := range b {
		i := slices.IndexFunc(list, func(other Finding) bool { return other.Key == f.Key })
		if i < 0 {
			list = append(list, f)
			continue
		}
		plans := slices.Concat(list[i].Plans, f.Plans)
		if better(f.Example, list[i].Example) < 0 {
			list[i] = f
		}
		list[i].Plans = plans
	}
	return list
}

// of returns the n of a shard "i/n", index the i.
func of(shard string) string {
	_, n, _ := strings.Cut(shard, "/")
	return n
}

func index(shard string) int {
	text, _, _ := strings.Cut(shard, "/")
	i, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return i
}

// complete reports whether all shards of a simulation are there.
func complete(shards []string) bool {
	return len(shards) > 0 && strconv.Itoa(len(shards)) == of(shards[0])
}
