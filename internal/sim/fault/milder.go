// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"time"
)

// milderKinds has, for each kind, the faults that put the operator to a similar test, and that more
// maintainers believe in, the best first. The order is by what happens to an operator every day:
//
//   - a conflict, or a watch that is some milliseconds behind;
//   - a request that fails and is tried again;
//   - a graceful restart, then a crash, then a panic;
//   - everything for which several things must come together.
var milderKinds = map[Kind][]Fault{
	CrashBeforeWrite: {{Kind: RefuseWrite, How: "409"}, {Kind: RefuseWrite, How: "500"}, {Kind: StopAtWrite}},
	CrashAfterWrite:  {{Kind: StopAtWrite}},
	LoseWriteAnswer:  {{Kind: StopAtWrite}, {Kind: CrashAfterWrite}},
	LandLate:         {{Kind: StopAtWrite}, {Kind: CrashBeforeWrite}, {Kind: CrashAfterWrite}, {Kind: PauseBeforeWrite, For: 30 * time.Second}},
	SecondLeader:     {{Kind: StopAtWrite}, {Kind: CrashAfterWrite}},
	PanicAtWrite:     {{Kind: RefuseWrite, How: "500"}, {Kind: StopAtWrite}, {Kind: CrashBeforeWrite}},
	PauseBeforeWrite: {{Kind: TouchBeforeWrite}},
	MutateWrite:      {{Kind: TouchBeforeWrite}},
	Fight:            {{Kind: TouchBeforeWrite}, {Kind: MutateWrite}},
	Recreate:         {{Kind: DeleteAndCreate}},

	OccupyNameByController: {{Kind: OccupyName}},
	RestartInPast:          {{Kind: StopAtWrite}, {Kind: CrashAfterWrite}},

	PanicAtRead: {{Kind: RefuseRead, How: "500"}},

	CrashBeforeCall: {{Kind: FailCall}},
	LoseCallAnswer:  {{Kind: CrashAfterCall}},
	FailCall:        {{Kind: ThrottleCall}},
	HangCall:        {{Kind: SlowCall, For: 5 * time.Second}, {Kind: FailCall}},
	Outage:          {{Kind: FailCall}},
	OutageUntilIdle: {{Kind: FailCall}, {Kind: Outage, For: time.Minute}},
	PanicAtCall:     {{Kind: FailCall}, {Kind: CrashBeforeCall}},
	CrashInsideCall: {{Kind: FailCall}, {Kind: CrashAfterCall}, {Kind: CrashBeforeCall}},

	MissEvent:   {{Kind: DelayWatch, By: 1}, {Kind: DelayEvent}},
	DelayEvent:  {{Kind: DelayWatch, By: 1}},
	ExpireWatch: {{Kind: CloseWatch}},
}

// milderAnswers has the answers of a kind, the most ordinary first.
var milderAnswers = map[Kind][]string{
	RefuseWrite: {"409", "429", "500", "403", "webhook", "422"},
	RefuseRead:  {"429", "500", "timeout", "403"},
}

// Milder returns faults that put the operator to a similar test as f, and that convince more: those
// that happen more often, and those with smaller numbers. The most convincing one is the first. A
// plan that shows the same mistake with one of them explains it better.
//
// at is the place at which f strikes, and limits the list to what can strike there. It may be nil:
// then faults are left out that depend on more than the place that f names.
func (f Fault) Milder(at *Place) []Fault {
	var list []Fault
	if f.Kind == RestartInPast && at != nil && at.Write != nil {
		// The process sees later what a process after a crash would not see.
		for _, from := range []int{1, 2} {
			list = append(list, Fault{Kind: DelayWatch, At: at.Write.Seen[f.Of] + from, Of: f.Of, By: 1})
		}
	}
	if f.Kind == RefuseWrite && f.How == "409" {
		list = append(list, at.possible(Fault{Kind: TouchBeforeWrite, At: f.At})...)
	}
	for _, milder := range milderKinds[f.Kind] {
		milder.At, milder.Of = f.At, f.Of
		if f.Kind.Point() == AtWrite && milder.Kind.entry().of == none {
			milder.Of = ""
		}
		list = append(list, at.possible(milder)...)
	}
	answers := milderAnswers[f.Kind]
	for _, how := range answers[:max(0, slices.Index(answers, f.How))] {
		milder := f
		milder.How = how
		list = append(list, at.possible(milder)...)
	}
	return append(list, f.smaller()...)
}

// possible returns a fault if it can strike at a place. At a nil place, only those can that can at
// each place of their point.
func (p *Place) possible(f Fault) []Fault {
	if p == nil {
		e := f.Kind.entry()
		if e.when != nil || e.can != nil && f.How != "500" {
			return nil
		}
		return []Fault{f}
	}
	if !slices.ContainsFunc(p.Faults(), func(other Fault) bool { return other.Kind == f.Kind && other.Of == f.Of && other.How == f.How }) {
		return nil
	}
	return []Fault{f}
}

// smaller returns the fault with smaller numbers.
func (f Fault) smaller() []Fault {
	var list []Fault
	for _, by := range slices.Compact([]int{1, f.By / 2}) {
		if by > 0 && by < f.By {
			smaller := f
			smaller.By = by
			list = append(list, smaller)
		}
	}
	for _, part := range []time.Duration{20, 4} {
		if d := (f.For / part).Truncate(time.Second); d != 0 {
			smaller := f
			smaller.For = d
			list = append(list, smaller)
		}
	}
	return list
}
