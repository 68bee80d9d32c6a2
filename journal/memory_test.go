// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Objects that are stuck, each for another reason.
var stuck = map[string][]journal.Event{
	"waiting":       {start, journal.Finished{Result: journal.ResultWaiting}},
	"failing":       {start, journal.Finished{Result: journal.ResultFailed, Outcome: journal.Outcome{Err: errBoom}}},
	"paused":        {start, journal.Gated{Reason: "Paused"}, journal.Finished{Result: journal.ResultPaused}},
	"ended early":   {start, journal.StepSkipped{Step: "B", After: "A"}, done},
	"slowed down":   {start, journal.HotLoop{Reconciles: 6, Slowed: time.Minute}, done},
	"cache too old": {start, journal.Finished{Result: journal.ResultWaiting}, start, journal.Finished{Result: journal.ResultStale}},
	"running":       {start, wrote},
}

// An object that waits, fails or hangs outlives any number of healthy reconciles of others.
func TestRingKeepsWhatIsStuck(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{Objects: len(stuck) - 1}) // the one that hangs is not counted
	for name, events := range stuck {
		observe(r, "databases", journal.Object{Kind: "Database", Name: name}, events...)
	}
	for i := range 1000 {
		observe(r, "databases", journal.Object{Kind: "Database", Name: fmt.Sprint("healthy-", i)}, triggered("A"), because("A"), wrote, done)
	}
	for name, events := range stuck {
		if got := len(r.Entries(journal.Object{Kind: "Database", Name: name})); got != len(events) {
			t.Errorf("of the object that is %s there are %d entries, want %d", name, got, len(events))
		}
	}
}

// An object that is well again, or gone, is dropped like any other that is.
func TestRingForgetsWhatWasStuck(t *testing.T) {
	for name, end := range map[string]journal.Result{"done": journal.ResultDone, "converged": journal.ResultConverged, "gone": journal.ResultGone, "deleted": journal.ResultDeleted} {
		t.Run(name, func(t *testing.T) {
			r := journal.NewRing(journal.RingOptions{Objects: 3})
			observe(r, "databases", db, start, journal.Finished{Result: journal.ResultWaiting}, start, journal.Finished{Result: end})
			for i := range 3 {
				observe(r, "databases", journal.Object{Kind: "Database", Name: fmt.Sprint(i)}, start, done)
			}
			if got := len(r.Entries(db)); got != 0 {
				t.Errorf("there are %d entries, want none", got)
			}
		})
	}
}

// Among those that are stuck, the one without events for the longest time is dropped
// first.
func TestRingBoundsWhatIsStuck(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{Objects: 2})
	object := func(name string) journal.Object { return journal.Object{Kind: "Database", Name: name} }
	for _, name := range []string{"a", "b", "a", "c"} {
		observe(r, "databases", object(name), start, journal.Finished{Result: journal.ResultFailed})
	}
	for name, want := range map[string]int{"a": 4, "b": 0, "c": 2} {
		if got := len(r.Entries(object(name))); got != want {
			t.Errorf("of %s there are %d entries, want %d", name, got, want)
		}
	}
}

// payload is an error that holds on to much more than its text.
type payload struct{ content []byte }

func (*payload) Error() string { return "the body was refused" }

// The events of one reconcile, as the engine reports them, of an object with three steps of which
// one fails or waits. Every string is one of its own, as it is when it comes from the API server.
func reconcileOf(ctx context.Context, o journal.Observer, object journal.Object, number int, err error) {
	object.Name, object.Namespace = strings.Clone(object.Name), strings.Clone(object.Namespace)
	cause := journal.Cause{Kind: journal.CauseForeignChange, Verb: "updated", Object: journal.Object{Kind: "Secret", Namespace: object.Namespace, Name: strings.Clone(object.Name)}}
	o.Observe(ctx, journal.Entry{Time: time.Now(), Controller: "databases", Object: object, Event: journal.Triggered{Cause: cause}})
	run := journal.NewRun(o, types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", number)), "databases", object)
	outcome := journal.Outcome{Waits: []journal.Wait{{For: fmt.Sprintf("Secret %s/%s", object.Namespace, object.Name)}}}
	result := journal.ResultWaiting
	if err != nil {
		err = fmt.Errorf("Publish: creating the service: %w", err)
		outcome = journal.Outcome{Err: err, Class: "Forbidden", Remedy: "give the operator's ServiceAccount the permission that the message names"}
		result = journal.ResultFailed
	}
	run.Note(ctx, journal.Started{Causes: []journal.Cause{cause}, Generation: 3, ResourceVersion: fmt.Sprint(number), Finalizer: "example.com/database"})
	for _, step := range []string{"ReadPassword", "CreateDatabase"} {
		run.Note(ctx, journal.StepBegan{Step: step, Phase: journal.PhaseDo})
		run.Note(ctx, journal.StepEnded{Step: step, Phase: journal.PhaseDo})
	}
	run.Note(ctx, journal.StepBegan{Step: "Publish", Phase: journal.PhaseDo})
	run.Note(ctx, journal.StepEnded{Step: "Publish", Phase: journal.PhaseDo, Outcome: outcome})
	run.Note(ctx, journal.Wrote{Verb: "patch", Object: object, Subresource: "status", Fields: []string{strings.Clone(".status.conditions")}})
	run.Note(ctx, journal.Requeued{After: time.Second, Why: "backoff", Failures: number})
	run.Note(ctx, journal.Finished{Result: result, Outcome: outcome})
}

// inUse returns how many bytes of the heap are in use.
func inUse() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has finalized
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// A ring takes no more memory than it may, whatever fails how often, and keeps of every stuck
// object at least the last reconcile.
func TestRingTakesNoMoreMemoryThanItMay(t *testing.T) {
	rings.Test(t, "takes a second")
	const limit, objects, rounds = 1 << 20, 80, 25
	ctx := context.Background()
	for name, failure := range map[string]func(object, round int) error{
		"waiting":                     func(int, int) error { return nil },
		"failing with the same error": func(object, _ int) error { return fmt.Errorf("services %q is forbidden", fmt.Sprint("db-", object)) },
		"failing with a new error each time": func(object, round int) error {
			return fmt.Errorf("try %d of %d: %s", round, object, strings.Repeat("x", 300))
		},
		"errors with much in them": func(int, int) error {
			return &payload{make([]byte, 1<<14)}
		},
		"very long errors": func(object, round int) error {
			return fmt.Errorf("%d %d %s", object, round, strings.Repeat("x", 1<<13))
		},
		"joined errors": func(object, round int) error {
			return errors.Join(fmt.Errorf("object %d", object), &payload{make([]byte, 1<<12)}, fmt.Errorf("round %d", round))
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := inUse()
			r := journal.NewRing(journal.RingOptions{Bytes: limit})
			for round := range rounds {
				for i := range objects {
					reconcileOf(ctx, r, journal.Object{Group: "example.com", Kind: "Database", Namespace: "shop", Name: fmt.Sprint("db-", i)}, round, failure(i, round))
				}
			}
			if took := inUse() - before; took > limit {
				t.Errorf("it takes %d kB, may take %d kB", took>>10, limit>>10)
			} else {
				t.Logf("it takes %d kB of %d kB", took>>10, limit>>10)
			}
			for i := range objects {
				entries := r.Entries(journal.Object{Group: "example.com", Kind: "Database", Namespace: "shop", Name: fmt.Sprint("db-", i)})
				if len(entries) < 10 {
					t.Fatalf("of object %d there are %d entries, want the last reconcile", i, len(entries))
				}
			}
			runtime.KeepAlive(r)
		})
	}
}

// What was cut off of a text says so, and errors keep their text and what they join.
func TestRingKeepsErrorsAsText(t *testing.T) {
	r := journal.NewRing(journal.RingOptions{})
	long := strings.Repeat("é", 10_000)
	joined := fmt.Errorf("both: %w", errors.Join(errors.New("a"), errors.New("b")))
	for _, err := range []error{errBoom, errors.New(long), joined} {
		observe(r, "databases", db, journal.Finished{Result: journal.ResultFailed, Outcome: journal.Outcome{Err: err, Class: "Transient"}})
	}
	entries := r.Entries(db)
	errOf := func(i int) error { return entries[i].Event.(journal.Finished).Outcome.Err }
	if got := errOf(0).Error(); got != "boom" {
		t.Errorf("a short error has become %q", got)
	}
	if got := errOf(1).Error(); len(got) > 5000 || !strings.HasPrefix(got, strings.Repeat("é", 1000)) || !strings.HasSuffix(got, "é… (15936 bytes more)") {
		t.Errorf("a long error has become %d bytes, with the end %q", len(got), got[len(got)-40:])
	}
	parts, ok := errOf(2).(interface{ Unwrap() []error })
	if got := errOf(2).Error(); got != "both: a\nb" || !ok || len(parts.Unwrap()) != 2 || parts.Unwrap()[1].Error() != "b" {
		t.Errorf("a joined error has become %q, %v", got, ok)
	}
	if got := entries[0].Event.(journal.Finished).Outcome.Class; got != "Transient" {
		t.Errorf("its class has become %q", got)
	}
}

// Whatever happens to however many objects, the ring keeps to its bounds, and the stuck ones
// outlive the others.
func TestRingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const objects = 4
		r := journal.NewRing(journal.RingOptions{Objects: objects, Entries: 8, Bytes: 64 << 10})
		last := map[string]journal.Result{}
		var order []string // of those that are stuck, the latest last
		for range rapid.IntRange(1, 60).Draw(t, "reconciles") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "object")
			result := rapid.SampledFrom([]journal.Result{journal.ResultDone, journal.ResultFailed, journal.ResultWaiting, journal.ResultConverged}).Draw(t, "result")
			object := journal.Object{Kind: "Database", Name: name}
			observe(r, "databases", object, triggered("A"), because("A"), wrote, journal.Finished{Result: result, Outcome: journal.Outcome{Err: errBoom}})
			last[name] = result
			kept := order[:0:0]
			for _, o := range order {
				if o != name {
					kept = append(kept, o)
				}
			}
			if order = kept; result == journal.ResultFailed || result == journal.ResultWaiting {
				order = append(order, name)
				order = order[max(0, len(order)-objects):]
			}
		}
		if got := len(r.Objects()); got > objects {
			t.Fatalf("%d objects are kept", got)
		}
		for _, name := range order {
			entries := r.Entries(journal.Object{Kind: "Database", Name: name})
			if len(entries) == 0 || entries[len(entries)-1].Event.(journal.Finished).Result != last[name] {
				t.Fatalf("of %s, whose last result is %s, there are %v", name, last[name], texts(entries))
			}
		}
	})
}
