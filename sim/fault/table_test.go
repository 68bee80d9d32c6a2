// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What each kind of fault is called, where it strikes, and what it changes about what can be
// expected of the operator. Plans are kept in reports and issues: a text that changes breaks them.
func TestTable(t *testing.T) {
	const adds, hides, doubles, alone = "adds work", "hides", "doubles", "alone"
	tests := map[Kind]struct {
		text    string
		point   Point
		changes string
	}{
		CrashBeforeWrite:       {"crash before write {at}", AtWrite, ""},
		CrashAfterWrite:        {"crash after write {at}", AtWrite, ""},
		LoseWriteAnswer:        {"lose the answer of write {at}: {how}", AtWrite, ""},
		RefuseWrite:            {"refuse write {at}: {how}", AtWrite, ""},
		LandLate:               {"land write {at} late", AtWrite, ""},
		SecondLeader:           {"second leader from write {at}", AtWrite, doubles},
		PanicAtWrite:           {"panic at write {at}", AtWrite, ""},
		StopAtWrite:            {"stop at write {at}", AtWrite, ""},
		PauseBeforeWrite:       {"pause before write {at} for {for}", AtWrite, ""},
		TouchBeforeWrite:       {"touch the object before write {at}", AtWrite, adds},
		MutateWrite:            {"mutate write {at}", AtWrite, adds},
		OccupyName:             {"occupy the name before write {at}", AtWrite, adds},
		OccupyNameByController: {"occupy the name before write {at} by another controller", AtWrite, adds},
		LeaveOrphan:            {"leave an orphan before write {at}", AtWrite, adds},
		DeleteBeforeWrite:      {"delete the object before write {at}", AtWrite, adds},
		Fight:                  {"fight over write {at}", AtWrite, adds},
		Vanish:                 {"lose the object in spite of the finalizer of write {at}", AtWrite, adds + ", " + alone},
		RestartInPast:          {"restart {by} events in the past of {of} after write {at}", AtWrite, hides},
		JumpClock:              {"jump the clock by {for} at write {at}", AtWrite, adds},
		Recreate:               {"recreate {of} after write {at}", AtWrite, adds},
		DeleteAndCreate:        {"delete and later create {of} after write {at}", AtWrite, adds},
		WipeStatus:             {"wipe the status of {of} after write {at}", AtWrite, adds},
		StripAnnotations:       {"strip the annotations of {of} after write {at}", AtWrite, adds},
		Withhold:               {"withhold {of} from write {at}", AtWrite, adds},
		WithholdAtDeletion:     {"withhold {of} from deletion {at}", AtDeletion, adds},
		PanicAtRead:            {"panic at read {at}", AtRead, ""},
		RefuseRead:             {"refuse read {at}: {how}", AtRead, ""},
		CrashBeforeCall:        {"crash before call {at}", AtCall, ""},
		CrashAfterCall:         {"crash after call {at}", AtCall, ""},
		LoseCallAnswer:         {"lose the answer of call {at}", AtCall, ""},
		FailCall:               {"fail call {at}", AtCall, ""},
		ThrottleCall:           {"throttle call {at}", AtCall, ""},
		SlowCall:               {"slow call {at} by {for}", AtCall, ""},
		HangCall:               {"hang call {at}", AtCall, ""},
		Outage:                 {"outage from call {at} for {for}", AtCall, ""},
		OutageUntilIdle:        {"outage from call {at} until idle", AtCall, ""},
		Drift:                  {"drift after call {at}", AtCall, adds},
		PanicAtCall:            {"panic at call {at}", AtCall, ""},
		CrashInsideCall:        {"crash inside call {at}", AtCall, ""},
		DelayWatch:             {"delay the watch of {of} by {by} from event {at}", AtEvent, hides},
		MissEvent:              {"miss event {at} of {of}", AtEvent, hides},
		DuplicateEvent:         {"duplicate event {at} of {of}", AtEvent, ""},
		DelayEvent:             {"delay event {at} of {of}", AtEvent, hides},
		CloseWatch:             {"close the watch of {of} after event {at}", AtEvent, ""},
		ExpireWatch:            {"expire the watch of {of} after event {at}", AtEvent, ""},
		TakeDetour:             {"detour {at}", AtDetour, adds},
		ProveIdle:              {"resync and restart at checkpoint {at}", WhenIdle, ""},
	}
	for _, kind := range Kinds() {
		test, ok := tests[kind]
		if !ok {
			t.Errorf("%q has no test", kind)
			continue
		}
		var changes []string
		for name, is := range map[string]bool{
			adds: kind.AddsWork(), hides: kind.entry().hides, doubles: kind.entry().doubles, alone: kind.entry().alone,
		} {
			if is {
				changes = append(changes, name)
			}
		}
		slices.Sort(changes)
		if got := strings.Join(changes, ", "); kind.String() != test.text || kind.Point() != test.point || got != test.changes {
			t.Errorf("got %q at point %d, which %q, want %q at %d, which %q", kind, kind.Point(), got, test.text, test.point, test.changes)
		}
		plan := Plan{Faults: []Fault{{Kind: CrashAfterWrite}, {Kind: kind}}}
		if plan.AddsWork() != kind.AddsWork() || !plan.Has(kind) || plan.Has(ProveIdle+1) {
			t.Errorf("the plan %q: adds work %t, has %q: %t", plan, plan.AddsWork(), kind, plan.Has(kind))
		}
	}
	if len(tests) != len(Kinds()) {
		t.Errorf("%d kinds have a test, %d are in the table", len(tests), len(Kinds()))
	}
}

// How often operators meet each kind of fault decides what a report shows first.
func TestLikelihoods(t *testing.T) {
	want := map[Likelihood][]Kind{
		LikelihoodLow: {
			LandLate, SecondLeader, PanicAtWrite, Vanish, RestartInPast, JumpClock, WipeStatus, PanicAtRead, PanicAtCall,
		},
		LikelihoodMedium: {
			LoseWriteAnswer, PauseBeforeWrite, MutateWrite, OccupyName, OccupyNameByController, LeaveOrphan, DeleteBeforeWrite, Fight,
			StripAnnotations, Withhold, WithholdAtDeletion, LoseCallAnswer, HangCall, Outage, OutageUntilIdle, Drift, CrashInsideCall,
			MissEvent, DuplicateEvent,
		},
		LikelihoodHigh: {
			CrashBeforeWrite, CrashAfterWrite, RefuseWrite, StopAtWrite, TouchBeforeWrite, Recreate, DeleteAndCreate, RefuseRead,
			CrashBeforeCall, CrashAfterCall, FailCall, ThrottleCall, SlowCall, DelayWatch, DelayEvent, CloseWatch, ExpireWatch, TakeDetour,
			ProveIdle,
		},
	}
	got := map[Likelihood][]Kind{}
	for _, kind := range Kinds() {
		got[kind.Likelihood()] = append(got[kind.Likelihood()], kind)
	}
	for _, list := range got {
		slices.Sort(list)
	}
	for _, list := range want {
		slices.Sort(list)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for likelihood, want := range map[Likelihood]string{
		LikelihoodLow: "low", LikelihoodMedium: "medium", LikelihoodHigh: "high", 0: "unknown likelihood 0",
	} {
		if got := likelihood.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A stale first list is the only fault that a usual client does not see.
func TestPremises(t *testing.T) {
	for _, kind := range Kinds() {
		got := kind.Note()
		if kind == RestartInPast {
			if !strings.HasPrefix(got, "possible only without streaming lists") {
				t.Errorf("%q has the premise %q", kind, got)
			}
		} else if got != "" {
			t.Errorf("%q has the premise %q", kind, got)
		}
	}
}

// A kind that is not in the table strikes nowhere.
func TestUnknownKind(t *testing.T) {
	kind := ProveIdle + 1
	if kind.Point() != 0 || kind.AddsWork() || !strings.HasPrefix(kind.String(), "unknown fault ") {
		t.Errorf("got %q at point %d, which adds work: %t", kind, kind.Point(), kind.AddsWork())
	}
}

// Whether two faults can be in one plan does not depend on their order. A fault is not compatible
// with itself, one that none survives beside another with none, and two processes not with what
// hides the present state from one of them.
func TestCompatibleIsSymmetric(t *testing.T) {
	for _, a := range Kinds() {
		for _, b := range Kinds() {
			x, y := Fault{Kind: a, At: 1, Of: "a"}, Fault{Kind: b, At: 1, Of: "a"}
			want := a != b && a != Vanish && b != Vanish
			for _, hiding := range []Kind{RestartInPast, DelayWatch, MissEvent, DelayEvent} {
				if a == SecondLeader && b == hiding || b == SecondLeader && a == hiding {
					want = false
				}
			}
			if Compatible(x, y) != want || Compatible(y, x) != want {
				t.Errorf("%q and %q: got %t and %t, want %t", x, y, Compatible(x, y), Compatible(y, x), want)
			}
		}
	}
	for _, other := range []Fault{{Kind: MissEvent, At: 2, Of: "a"}, {Kind: MissEvent, At: 1, Of: "b"}} {
		if !Compatible(Fault{Kind: MissEvent, At: 1, Of: "a"}, other) {
			t.Errorf("the same kind at another place, %q, is not compatible", other)
		}
	}
}

// A number or a duration that is out of range is a mistake of the fault, and spaces do not matter.
func TestParse(t *testing.T) {
	for _, text := range []string{
		"crash after write 99999999999999999999", "miss event 99999999999999999999 of a", "slow call 1 by 3parsecs",
		"delay the watch of a by 99999999999999999999 from event 1", "refuse read 1: 409", "lose the answer of write 1: webhook",
	} {
		if f, err := Parse(text); err == nil || !strings.Contains(err.Error(), "fault "+`"`+text+`"`) {
			t.Errorf("%q reads as %q with the error %v", text, f, err)
		}
	}
	want := Fault{Kind: Recreate, At: 2, Of: "backups.demo.example.com default/x"}
	got, err := Parse("  recreate  backups.demo.example.com default/x\tafter write 2 ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
