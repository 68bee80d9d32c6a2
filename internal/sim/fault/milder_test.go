// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// What is tried instead of a fault, the most convincing first.
func TestMilder(t *testing.T) {
	update := &Place{Point: AtWrite, At: 1, UsesClock: true, Write: &Write{Verb: "update", Exists: true, Conditional: true, Seen: map[string]int{"a": 4}}}
	deletion := &Place{Point: AtWrite, At: 1, Write: &Write{Verb: "delete", Exists: true}}
	creation := &Place{Point: AtWrite, At: 1, Write: &Write{Verb: "create", Named: true}}
	call := &Place{Point: AtCall, At: 1, Mutates: true}
	event := &Place{Point: AtEvent, At: 2, Of: "a"}
	var b strings.Builder
	for _, test := range []struct {
		fault string
		at    *Place
	}{
		{"crash before write 1", update},
		{"crash before write 1", deletion},
		{"crash before write 1", nil},
		{"crash after write 1", update},
		{"lose the answer of write 1: reset", update},
		{"refuse write 1: 409", update},
		{"refuse write 1: 422", creation},
		{"refuse write 1: 500", update},
		{"occupy the name before write 1", creation},
		{"occupy the name before write 1 by another controller", creation},
		{"leave an orphan before write 1", creation},
		{"fight over write 1", update},
		{"pause before write 1 for 2m0s", update},
		{"pause before write 1 for 3s", creation},
		{"restart 4 events in the past of a after write 1", update},
		{"restart 1 events in the past of a after write 1", nil},
		{"jump the clock by -1h0m0s at write 1", update},
		{"outage from call 1 until idle", call},
		{"outage from call 1 for 10m0s", call},
		{"crash inside call 1", call},
		{"miss event 2 of a", event},
		{"delay the watch of a by 3 from event 2", event},
		{"delay the watch of a by 5 from event 2", event},
		{"expire the watch of a after event 2", event},
		{"detour 1", nil},
	} {
		f, err := Parse(test.fault)
		if err != nil {
			t.Fatal(err)
		}
		write := &Write{}
		if test.at != nil && test.at.Write != nil {
			write = test.at.Write
		}
		b.WriteString(strings.TrimSuffix(test.fault+", "+write.Verb, ", ") + ":\n")
		for _, milder := range f.Milder(test.at) {
			fmt.Fprintf(&b, "    %s\n", milder)
		}
	}
	golden.Compare(t, "milder.txt", b.String())
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
