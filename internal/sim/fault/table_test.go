// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// What each kind of fault is called, where it strikes, how likely it is, on what it depends, and what it
// changes about what can be expected of the operator. Plans are kept in reports and issues: a text that
// changes breaks them.
func TestTable(t *testing.T) {
	points := map[Point]string{
		AtWrite: "write", AtRead: "read", AtCall: "call", AtEvent: "event", AtDetour: "detour", AtDeletion: "deletion", WhenIdle: "idle",
	}
	var b strings.Builder
	for _, kind := range Kinds() {
		e := kind.entry()
		fmt.Fprintf(&b, "%s | %s | %s", kind, points[kind.Point()], kind.Likelihood())
		for _, change := range []struct {
			is   bool
			text string
		}{{kind.AddsWork(), "adds work"}, {e.hides, "hides"}, {e.doubles, "doubles"}, {e.alone, "alone"}, {kind.Note() != "", kind.Note()}} {
			if change.is {
				b.WriteString(" | " + change.text)
			}
		}
		b.WriteString("\n")
		plan := Plan{Faults: []Fault{{Kind: CrashAfterWrite}, {Kind: kind}}}
		if plan.AddsWork() != kind.AddsWork() || !plan.Has(kind) || plan.Has(ProveIdle+1) {
			t.Errorf("the plan %q: adds work %t, has %q: %t", plan, plan.AddsWork(), kind, plan.Has(kind))
		}
	}
	golden.Compare(t, "kinds.txt", b.String())
}

// A kind that is not in the table strikes nowhere.
func TestUnknownKind(t *testing.T) {
	kind := ProveIdle + 1
	if kind.Point() != 0 || kind.AddsWork() || !strings.HasPrefix(kind.String(), "unknown fault ") || kind.Likelihood().String() != "unknown likelihood 0" {
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
