// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is tried instead of a fault, the most convincing first.
func TestMilder(t *testing.T) {
	update := &Place{Point: AtWrite, At: 1, UsesClock: true, Write: &Write{Verb: "update", Exists: true, Conditional: true, Seen: map[string]int{"a": 4}}}
	deletion := &Place{Point: AtWrite, At: 1, Write: &Write{Verb: "delete", Exists: true}}
	creation := &Place{Point: AtWrite, At: 1, Write: &Write{Verb: "create", Named: true}}
	call := &Place{Point: AtCall, At: 1, Mutates: true}
	event := &Place{Point: AtEvent, At: 2, Of: "a"}
	tests := []struct {
		fault string
		at    *Place
		want  []string
	}{
		{"crash before write 1", update, []string{"refuse write 1: 409", "refuse write 1: 500", "stop at write 1"}},
		{"crash before write 1", deletion, []string{"refuse write 1: 500", "stop at write 1"}},
		{"crash before write 1", nil, []string{"refuse write 1: 500", "stop at write 1"}},
		{"crash after write 1", update, []string{"stop at write 1"}},
		{"lose the answer of write 1: reset", update, []string{"stop at write 1", "crash after write 1"}},
		{"refuse write 1: 409", update, []string{"touch the object before write 1"}},
		{"refuse write 1: 422", creation, []string{"refuse write 1: 429", "refuse write 1: 500", "refuse write 1: 403", "refuse write 1: webhook"}},
		{"refuse write 1: 500", update, []string{"refuse write 1: 409", "refuse write 1: 429"}},
		{"occupy the name before write 1", creation, nil},
		{"occupy the name before write 1 by another controller", creation, []string{"occupy the name before write 1"}},
		{"leave an orphan before write 1", creation, nil},
		{"fight over write 1", update, []string{"touch the object before write 1", "mutate write 1"}},
		{"pause before write 1 for 2m0s", update, []string{
			"touch the object before write 1", "pause before write 1 for 6s", "pause before write 1 for 30s",
		}},
		{"pause before write 1 for 3s", creation, nil},
		{"restart 4 events in the past of a after write 1", update, []string{
			"delay the watch of a by 1 from event 5", "delay the watch of a by 1 from event 6", "stop at write 1", "crash after write 1",
			"restart 1 events in the past of a after write 1", "restart 2 events in the past of a after write 1",
		}},
		{"restart 1 events in the past of a after write 1", nil, []string{"stop at write 1", "crash after write 1"}},
		{"jump the clock by -1h0m0s at write 1", update, []string{"jump the clock by -3m0s at write 1", "jump the clock by -15m0s at write 1"}},
		{"outage from call 1 until idle", call, []string{"fail call 1", "outage from call 1 for 1m0s"}},
		{"outage from call 1 for 10m0s", call, []string{"fail call 1", "outage from call 1 for 30s", "outage from call 1 for 2m30s"}},
		{"crash inside call 1", call, []string{"fail call 1", "crash after call 1", "crash before call 1"}},
		{"miss event 2 of a", event, []string{"delay the watch of a by 1 from event 2", "delay event 2 of a"}},
		{"delay the watch of a by 3 from event 2", event, []string{"delay the watch of a by 1 from event 2"}},
		{"delay the watch of a by 5 from event 2", event, []string{"delay the watch of a by 1 from event 2", "delay the watch of a by 2 from event 2"}},
		{"expire the watch of a after event 2", event, []string{"close the watch of a after event 2"}},
		{"detour 1", nil, nil},
	}
	for _, test := range tests {
		f, err := Parse(test.fault)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, milder := range f.Milder(test.at) {
			got = append(got, milder.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.fault, diff)
		}
	}
}

// No fault is milder than itself, however many steps are between: shrinking ends.
func TestMilderEnds(t *testing.T) {
	place := &Place{Point: AtWrite, At: 1, UsesClock: true, Write: &Write{
		Verb: "update", Exists: true, Conditional: true, Owned: true, Child: true, Users: []string{"a b/c"}, Statuses: []string{"a b/c"},
	}}
	for _, kind := range Kinds() {
		start := Fault{Kind: kind, At: 1}
		if e := kind.entry(); len(e.by) > 0 {
			start.By = 9
		} else if len(e.times) > 0 {
			start.For = time.Hour
		} else if len(e.answers) > 0 {
			start.How = e.answers[len(e.answers)-1]
		}
		for _, at := range []*Place{nil, place} {
			if at != nil && kind.Point() != AtWrite {
				continue
			}
			var walk func(f Fault, depth int)
			walk = func(f Fault, depth int) {
				if depth > 20 {
					t.Fatalf("%s: %d steps", start, depth)
				}
				for _, milder := range f.Milder(at) {
					if milder.Kind.Likelihood() < f.Kind.Likelihood() {
						t.Errorf("%s is less likely than %s", milder, f)
					}
					if milder == start {
						t.Errorf("%s is milder than itself", milder)
					}
					walk(milder, depth+1)
				}
			}
			walk(start, 0)
		}
	}
}
