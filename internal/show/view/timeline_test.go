// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/journal"
)

// An axis keeps the order of time, has room for each reconcile, and marks do not cover each other.
func TestAxis(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
		var all []*reconcile
		at := now.Add(-time.Hour)
		for range 1 + r.IntN(12) {
			at = at.Add(time.Duration(r.Int64N(int64(10 * time.Minute))))
			run := &reconcile{began: at, ended: at.Add(time.Duration(r.Int64N(int64(3 * time.Second)))), result: journal.ResultDone}
			for range r.IntN(5) {
				run.marks = append(run.marks, mark{at: at.Add(time.Duration(r.Int64N(int64(run.ended.Sub(at)) + 1)))})
			}
			all = append(all, run)
		}
		a := newAxis(all, now)
		if !slices.IsSorted(a.places) {
			t.Fatalf("seed %d: the order is not that of time: %v", seed, a.places)
		}
		var marks []time.Time
		for _, run := range all {
			if w := a.at(run.ended) - a.at(run.began); w < leastBar-0.01 && run.ended.After(run.began) {
				t.Errorf("seed %d: a reconcile has %v pixels", seed, w)
			}
			for _, m := range run.marks {
				marks = append(marks, m.at)
			}
		}
		slices.SortFunc(marks, time.Time.Compare)
		for i := 1; i < len(marks); i++ {
			if d := a.at(marks[i]) - a.at(marks[i-1]); marks[i].After(marks[i-1]) && d < leastMark-0.01 {
				t.Errorf("seed %d: two marks are %v pixels apart", seed, d)
			}
		}
	}
}

// An arrow leads from the reconcile that wrote an object to the one that this caused, and to none that
// another client has caused since.
func TestArrows(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	child := journal.Object{Kind: "Deployment", Namespace: "shop", Name: "web"}
	change := journal.Cause{Kind: journal.CauseChildChange, Object: child, Verb: "updated"}
	owner, other := database("a"), database("b")
	run := func(o journal.Object, second int, writes journal.Object, causes ...journal.Cause) *reconcile {
		r := &reconcile{id: fmt.Sprint(second), object: o, controller: "database", began: at(second), ended: at(second).Add(time.Second / 2), causes: causes}
		if writes.Name != "" {
			r.marks = []mark{{at: at(second).Add(time.Second / 4), kind: wrote, object: writes}}
		}
		return r
	}
	all := []*reconcile{
		run(owner, 0, child),
		run(owner, 2, journal.Object{}, change), // caused by the write at 0
		run(owner, 4, journal.Object{}, change), // by another client: it was reconciled since
		run(other, 6, owner),
		run(owner, 8, journal.Object{}, journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated"}), // the other one wrote it
		run(owner, 10, journal.Object{}, journal.Cause{Kind: journal.CauseTimer}),
	}
	var got []string
	for _, a := range arrows(all) {
		got = append(got, a.from.id+" to "+a.to.id)
	}
	if want := []string{"0 to 2", "6 to 8"}; !slices.Equal(got, want) {
		t.Errorf("the arrows are %v, want %v", got, want)
	}
}

// Reconciles within a second have their milliseconds on the axis, no time is named twice, and each
// timeline is as wide as its screen.
func TestTicks(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var all []*reconcile
	for i, after := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second} {
		all = append(all, &reconcile{id: fmt.Sprint(i), object: database("a"), controller: "database", began: start.Add(after), ended: start.Add(after + 5*time.Millisecond), result: journal.ResultDone})
	}
	w := newWorld(t)
	for screen, want := range map[string]float64{"": 1230, "narrow": 334, "wide": 1630} {
		v := &viewing{server: w.server, now: start.Add(time.Minute), query: url.Values{"screen": {screen}}}
		d := v.draw(database("a"), all)
		if d.Width < want-1 || d.Width > want+1 {
			t.Errorf("%q: the timeline is %v pixels wide, want %v", screen, d.Width, want)
		}
		if end := d.Lanes[0].End; end != 0 {
			t.Errorf("%q: a timeline that fits has its name at %v, too", screen, end)
		}
		var texts []string
		for _, tick := range d.Ticks {
			texts = append(texts, tick.Text)
		}
		if want := []string{"12:00:00", ".250", ".500", "12:00:03"}; screen != "narrow" && !slices.Equal(texts, want) {
			t.Errorf("%q: the times are %q, want %q", screen, texts, want)
		}
	}
	for i := range 60 {
		all = append(all, &reconcile{id: fmt.Sprint("later", i), object: database("a"), controller: "database", began: start.Add(time.Duration(i+1) * time.Minute), ended: start.Add(time.Duration(i+1)*time.Minute + time.Second)})
	}
	if d := (&viewing{server: w.server, now: start.Add(2 * time.Hour)}).draw(database("a"), all); d.Lanes[0].End < d.Width-20 {
		t.Errorf("the name of a lane of %v pixels ends at %v: it is not seen at the latest reconcile", d.Width, d.Lanes[0].End)
	}
}

// A hundred thousand objects are grouped with little work for each.
func BenchmarkChoose(b *testing.B) {
	w := newWorld(b)
	for i := range 100_000 {
		w.put(fmt.Sprintf("db-%d", i), "SecretNotFound", fmt.Sprintf("Secret shop/password-%d does not exist", i%10))
	}
	t, _ := w.server.view()
	b.ReportAllocs()
	for b.Loop() {
		if s := t.choose(filter{Text: "password"}, fewRows); s.Matching != 100_000 || len(s.Groups) != 1 {
			b.Fatalf("%d match in %d groups", s.Matching, len(s.Groups))
		}
	}
}

// A row is made for each change of an object, and for all objects when the first viewer comes.
func BenchmarkRow(b *testing.B) {
	w := newWorld(b)
	w.put("a", "SecretNotFound", "Secret shop/password-7 does not exist")
	obj := w.objects[database("a").Key()]
	t := newTable()
	b.ReportAllocs()
	for b.Loop() {
		t.set(obj, databases)
	}
}
