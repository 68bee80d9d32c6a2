// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What can strike at a place depends on what happens there.
func TestFaultsOfPlaces(t *testing.T) {
	with := func(more ...string) []string {
		return append([]string{
			"crash before write 1", "crash after write 1", "lose the answer of write 1: timeout", "lose the answer of write 1: 500",
			"lose the answer of write 1: reset", "land write 1 late", "second leader from write 1", "panic at write 1", "stop at write 1",
			"pause before write 1 for 2m0s",
		}, more...)
	}
	tests := map[string]struct {
		place Place
		want  []string
	}{
		"before the start": {
			Place{Point: AtWrite, Withholdable: []string{"secrets default/s"}}, []string{"withhold secrets default/s from write 0"},
		},
		"a creation": {
			Place{Point: AtWrite, At: 1, Write: &Write{Verb: "create", Named: true}},
			with("mutate write 1", "occupy the name before write 1", "occupy the name before write 1 by another controller"),
		},
		"a creation of a child": {
			Place{Point: AtWrite, At: 1, Write: &Write{Verb: "create", Owned: true}}, with("mutate write 1", "leave an orphan before write 1"),
		},
		"a write to a child": {
			Place{Point: AtWrite, At: 1, Write: &Write{Verb: "delete", Exists: true, Child: true}},
			with("touch the object before write 1", "delete the object before write 1"),
		},
		"a creation with a generated name": {
			Place{Point: AtWrite, At: 1, Write: &Write{Verb: "create"}}, with("mutate write 1"),
		},
		"an update": {
			Place{Point: AtWrite, At: 1, Write: &Write{Verb: "update", Exists: true}},
			with("touch the object before write 1", "mutate write 1", "fight over write 1"),
		},
		"a finalizer": {
			Place{Point: AtWrite, At: 1, Write: &Write{Verb: "patch", Exists: true, AddsFinalizer: true}},
			with("touch the object before write 1", "mutate write 1", "lose the object in spite of the finalizer of write 1"),
		},
		"a status": {
			Place{Point: AtWrite, At: 1, Write: &Write{Verb: "update", Subresource: "status", Exists: true}}, with("touch the object before write 1"),
		},
		"a deletion, with everything else": {
			Place{
				Point: AtWrite, At: 1, Watched: []string{"jobs.batch"}, UsesClock: true, Withholdable: []string{"secrets default/s"},
				Write: &Write{Verb: "delete", Users: []string{"a x/a", "a x/b"}, Statuses: []string{"a x/a"}, Annotated: []string{"a x/b"}},
			},
			with("restart 1 events in the past of jobs.batch after write 1", "restart 4 events in the past of jobs.batch after write 1",
				"jump the clock by 1h0m0s at write 1", "jump the clock by -1h0m0s at write 1",
				"recreate a x/a after write 1", "delete and later create a x/a after write 1",
				"recreate a x/b after write 1", "delete and later create a x/b after write 1",
				"wipe the status of a x/a after write 1", "strip the annotations of a x/b after write 1", "withhold secrets default/s from write 1"),
		},
		"a read": {
			Place{Point: AtRead, At: 2},
			[]string{"panic at read 2", "refuse read 2: 429", "refuse read 2: 403", "refuse read 2: 500", "refuse read 2: timeout"},
		},
		"an event": {
			Place{Point: AtEvent, At: 2, Of: "jobs.batch"}, []string{
				"delay the watch of jobs.batch by 1 from event 2", "delay the watch of jobs.batch by 3 from event 2", "miss event 2 of jobs.batch",
				"duplicate event 2 of jobs.batch", "delay event 2 of jobs.batch", "close the watch of jobs.batch after event 2",
				"expire the watch of jobs.batch after event 2",
			},
		},
		"a user's deletion": {
			Place{Point: AtDeletion, At: 1, Withholdable: []string{"secrets default/s"}}, []string{"withhold secrets default/s from deletion 1"},
		},
		"a detour":     {Place{Point: AtDetour, At: 1}, []string{"detour 1"}},
		"a checkpoint": {Place{Point: WhenIdle, At: 1}, []string{"resync and restart at checkpoint 1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range test.place.Faults() {
				if f.Kind != RefuseWrite { // TestRefusalsOfWrites has them
					got = append(got, f.String())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only a call that has an effect can have it after the process has died.
func TestFaultsOfCalls(t *testing.T) {
	every := []string{
		"crash before call 1", "crash after call 1", "lose the answer of call 1", "fail call 1", "throttle call 1", "slow call 1 by 1m30s",
		"hang call 1", "outage from call 1 for 10m0s", "outage from call 1 until idle", "drift after call 1", "panic at call 1",
	}
	for mutates, want := range map[bool][]string{false: every, true: append(every, "crash inside call 1")} {
		place := Place{Point: AtCall, At: 1, Mutates: mutates}
		var got []string
		for _, f := range place.Faults() {
			got = append(got, f.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("mutates %t: %s", mutates, diff)
		}
	}
}
