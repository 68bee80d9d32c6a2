// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A listener records what it receives, under its name.
type listener struct {
	name     string
	received *[]string
}

func (l listener) Observe(_ context.Context, e journal.Entry) {
	*l.received = append(*l.received, l.name+": "+e.String())
}

func TestObservers(t *testing.T) {
	var received []string
	a, b, c := listener{"a", &received}, listener{"b", &received}, listener{"c", &received}
	for _, tt := range []struct {
		name      string
		observers []journal.Observer
		want      []string
	}{
		{"one", []journal.Observer{a}, []string{"a"}},
		{"in their order", []journal.Observer{b, a, c}, []string{"b", "a", "c"}},
		{"nil ones are left out", []journal.Observer{nil, a, nil, journal.Observers(), b}, []string{"a", "b"}},
		{"of several", []journal.Observer{journal.Observers(a, b), c}, []string{"a", "b", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			received = nil
			journal.Observers(tt.observers...).Observe(t.Context(), journal.Entry{Object: db, Event: start})
			var want []string
			for _, name := range tt.want {
				want = append(want, name+": Database default/db: started")
			}
			if diff := cmp.Diff(want, received); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		})
	}
	for _, none := range [][]journal.Observer{nil, {nil, nil}} {
		if got := journal.Observers(none...); got != nil {
			t.Errorf("of none there is %v, want nil", got)
		}
	}
}

// An event that is noted in a context reaches the observer, with the time and the run.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := journal.NewRing(journal.RingOptions{})
		run := journal.NewRun(ring, "1", "databases", db)
		ctx := journal.ContextWithRun(t.Context(), run)
		time.Sleep(time.Minute) // in no time
		journal.RunFromContext(ctx).Note(ctx, start)
		want := []journal.Entry{{Time: time.Now(), Run: run, Controller: "databases", Object: db, Event: start}}
		same := cmp.Comparer(func(a, b *journal.Run) bool { return a == b })
		if diff := cmp.Diff(want, ring.Entries(db), same); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
	})
}

// Without an observer every method may be called, and does nothing.
func TestNoObserver(t *testing.T) {
	run := journal.NewRun(nil, "1", "databases", db)
	if run != nil {
		t.Errorf("there is a run, %v, without an observer", run)
	}
	ctx := t.Context()
	if got := journal.ContextWithRun(ctx, run); got != ctx {
		t.Error("the context is another")
	}
	if got := journal.RunFromContext(ctx); got != nil {
		t.Errorf("the context has the run %v", got)
	}
	allocations := testing.AllocsPerRun(100, func() {
		journal.RunFromContext(ctx).Note(ctx, nil)
	})
	if allocations > 0 {
		t.Errorf("to note nothing allocates %v times", allocations)
	}
}
