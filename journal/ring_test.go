// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/journal"
)

var (
	db      = journal.Object{Group: "example.com", Kind: "Database", Namespace: "default", Name: "db"}
	secret  = journal.Object{Kind: "Secret", Namespace: "default", Name: "db"}
	errBoom = errors.New("boom")

	start     = journal.Started{}
	converged = journal.Finished{Result: journal.ResultConverged}
	done      = journal.Finished{Result: journal.ResultDone}
	wrote     = journal.Wrote{Verb: "patch", Object: db}
)

// triggered and because are a change of something, before and in the reconcile that it makes.
func triggered(name string) journal.Triggered {
	return journal.Triggered{Cause: journal.Cause{Kind: journal.CauseForeignChange, Object: journal.Object{Kind: name}}}
}

func because(names ...string) journal.Started {
	var s journal.Started
	for _, name := range names {
		s.Causes = journal.MergeCauses(s.Causes, triggered(name).Cause)
	}
	return s
}

// observe passes events of an object to the ring.
func observe(r *journal.Ring, controller string, object journal.Object, events ...journal.Event) {
	for _, e := range events {
		r.Observe(context.Background(), journal.Entry{Controller: controller, Object: object, Event: e})
	}
}

// texts returns what entries say, without the object.
func texts(entries []journal.Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Event.String())
	}
	return all
}

func TestRingKeeps(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []journal.Event
		want   []string
	}{
		{"nothing", nil, nil},
		{"a reconcile", []journal.Event{start, wrote, done}, []string{"started", "patch Database default/db", "finished: done"}},
		{
			"no reads from the cache, unless they fail",
			[]journal.Event{journal.Read{Object: secret}, journal.Read{Object: secret, Live: true}, journal.Read{Object: secret, Err: errBoom}},
			[]string{"read live Secret default/db", "read Secret default/db: boom"},
		},
		{
			"what waits in the queue", []journal.Event{done, triggered("A"), triggered("A"), triggered("B")},
			[]string{"finished: done", "triggered by A", "triggered by A", "triggered by B"},
		},
		{
			"causes instead of what was in the queue", []journal.Event{triggered("A"), triggered("A"), because("A", "A")},
			[]string{"started, because of A 2 times"},
		},
		{
			"what comes into the queue in the meantime, until the next reconcile", []journal.Event{because("A"), triggered("B"), done},
			[]string{"started, because of A", "triggered by B", "finished: done"},
		},
		{
			"a trigger in the meantime is removed when its reconcile begins", []journal.Event{because("A"), triggered("B"), done, because("B"), done},
			[]string{"started, because of A", "finished: done", "started, because of B", "finished: done"},
		},
		{
			"of two with nothing to do one", []journal.Event{because("A"), converged, because("B"), converged},
			[]string{"started, because of B, A", "finished: converged"},
		},
		{
			"of many with nothing to do one, with all causes",
			[]journal.Event{because("A"), converged, because("B"), converged, because("A", "A"), converged, because("C"), converged},
			[]string{"started, because of C, A 3 times, B", "finished: converged"},
		},
		{
			"those with nothing to do on both sides of one that had something",
			[]journal.Event{because("A"), converged, because("B"), converged, because("C"), wrote, done, because("D"), converged, because("E"), converged},
			[]string{
				"started, because of B, A", "finished: converged", "started, because of C", "patch Database default/db", "finished: done",
				"started, because of E, D", "finished: converged",
			},
		},
		{
			"one that has read live is another", []journal.Event{because("A"), converged, because("B"), journal.Read{Object: db, Live: true}, converged},
			[]string{"started, because of A", "finished: converged", "started, because of B", "read live Database default/db", "finished: converged"},
		},
		{
			"with nothing to do, while something came into the queue",
			[]journal.Event{because("A"), converged, because("B"), triggered("C"), converged, because("C"), triggered("D"), triggered("E"), converged},
			[]string{"started, because of C, B, A", "triggered by D", "triggered by E", "finished: converged"},
		},
		{
			"done is not converged", []journal.Event{start, done, start, converged, start, done},
			[]string{"started", "finished: done", "started", "finished: converged", "started", "finished: done"},
		},
		{
			"one that has done something and converged is another", []journal.Event{start, wrote, converged, start, converged},
			[]string{"started", "patch Database default/db", "finished: converged", "started", "finished: converged"},
		},
		{
			"an end without a beginning", []journal.Event{start, converged, wrote, converged},
			[]string{"started", "finished: converged", "patch Database default/db", "finished: converged"},
		},
		{"the end of something that began before", []journal.Event{converged, start, converged}, []string{"finished: converged", "started", "finished: converged"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := journal.NewRing(journal.RingOptions{})
			observe(r, "databases", db, tt.events...)
			if diff := cmp.Diff(tt.want, texts(r.Entries(db))); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// The latest entries of each object are kept, no more, and no fewer.
func TestRingBoundsEntries(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{Entries: 3})
	var all []string
	for i := range 20 {
		e := journal.Called{What: fmt.Sprint("call ", i)}
		observe(r, "databases", db, e)
		all = append(all, e.String())
		if diff := cmp.Diff(all[max(0, len(all)-3):], texts(r.Entries(db))); diff != "" {
			t.Fatalf("after entry %d (-want +got):\n%s", i, diff)
		}
	}
}

// The object without events for the longest time is dropped first.
func TestRingBoundsObjects(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{Objects: 2})
	object := func(name string) journal.Object { return journal.Object{Kind: "Database", Name: name} }
	for _, name := range []string{"a", "b", "a", "c"} {
		observe(r, "databases", object(name), start)
	}
	if diff := cmp.Diff([]journal.Object{object("c"), object("a")}, r.Objects()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for name, want := range map[string]int{"a": 2, "b": 0, "c": 1} {
		if got := len(r.Entries(object(name))); got != want {
			t.Errorf("of %s there are %d entries, want %d", name, got, want)
		}
	}
	observe(r, "databases", object("b"), start)
	if got := len(r.Entries(object("b"))); got != 1 {
		t.Errorf("of b, which is back, there are %d entries, want 1", got)
	}
}

// Among many that wait, what has just recovered stays for a while: a tenth of the objects.
func TestRingKeepsWhatHasRecovered(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{Objects: 20})
	object := func(name string, i int) journal.Object {
		return journal.Object{Kind: "Database", Name: fmt.Sprint(name, i)}
	}
	for i := range 30 {
		observe(r, "a", object("waits", i), start, journal.Finished{Result: journal.ResultWaiting})
	}
	for i := range 3 {
		observe(r, "a", object("recovered", i), start, done)
	}
	for i := range 10 {
		observe(r, "a", object("waits", i), start, journal.Finished{Result: journal.ResultWaiting})
	}
	kept := 0
	for i := range 3 {
		if len(r.Entries(object("recovered", i))) > 0 {
			kept++
		}
	}
	if kept != 2 || len(r.Entries(object("recovered", 0))) > 0 || len(r.Objects()) != 20 {
		t.Errorf("%d of three that have recovered are kept, of %d objects; want the latest two of 20", kept, len(r.Objects()))
	}
}

func TestRingDefaults(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{Entries: -1})
	for i := range 1100 {
		observe(r, "databases", journal.Object{Kind: "Database", Name: fmt.Sprint(i)}, start)
		observe(r, "databases", db, start)
	}
	if got := len(r.Objects()); got != 1000 {
		t.Errorf("there are %d objects, want 1000", got)
	}
	if got := len(r.Entries(db)); got != 256 {
		t.Errorf("there are %d entries, want 256", got)
	}
}

// Two controllers have a history each; Entries returns both as one.
func TestRingOfTwoControllers(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{})
	observe(r, "databases", db, triggered("A"))
	observe(r, "backups", db, triggered("A"), because("A"))
	observe(r, "databases", db, because("A"))
	observe(r, "backups", db, converged)
	observe(r, "databases", db, done)
	want := []string{"started, because of A", "started, because of A", "finished: converged", "finished: done"}
	if diff := cmp.Diff(want, texts(r.Entries(db))); diff != "" {
		t.Errorf("entries, in the order in which they happened (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]journal.Object{db}, r.Objects()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// What Entries has returned, and what observers have received, does not change afterwards.
func TestRingEntriesAreACopy(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{Entries: 4})
	caused := because("A", "B")
	observe(r, "databases", db, because("A"), converged, caused)
	before := r.Entries(db)
	want := texts(before)
	observe(r, "databases", db, converged, because("A"), converged, start, wrote, wrote, wrote, done)
	if diff := cmp.Diff(want, texts(before)); diff != "" {
		t.Errorf("the snapshot was changed (-before +after):\n%s", diff)
	}
	if got := caused.String(); got != "started, because of A, B" {
		t.Errorf("the event of the observer was changed: %s", got)
	}
}

func TestRingFromTwoGoroutines(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{Entries: 8, Objects: 3})
	var all sync.WaitGroup
	for _, controller := range []string{"databases", "backups"} {
		all.Go(func() {
			for i := range 500 {
				observe(r, controller, db, triggered("A"), because("A"), converged)
				observe(r, controller, journal.Object{Kind: "Database", Name: fmt.Sprint(i % 5)}, start, wrote, done)
				for _, object := range r.Objects() {
					if got := len(r.Entries(object)); got > 2*8 {
						t.Errorf("of %s there are %d entries", object, got)
					}
				}
			}
		})
	}
	all.Wait()
	if got := len(r.Objects()); got == 0 || got > 3 {
		t.Errorf("there are %d objects, want at most 3", got)
	}
}

// The time of a merged reconcile is that of the latest.
func TestRingMergesIntoTheLatest(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{})
	noon := time.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC)
	for i, e := range []journal.Event{start, converged, start, converged, start, converged} {
		run := &journal.Run{ID: types.UID(fmt.Sprint("run", i/2))}
		r.Observe(context.Background(), journal.Entry{Time: noon.Add(time.Duration(i) * time.Minute), Run: run, Object: db, Event: e})
	}
	var got []string
	for _, e := range r.Entries(db) {
		got = append(got, strings.Join([]string{e.Time.Format(time.TimeOnly), string(e.Run.ID), e.String()}, " "))
	}
	want := []string{"12:04:00 run2 Database default/db: started", "12:05:00 run2 Database default/db: finished: converged"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
