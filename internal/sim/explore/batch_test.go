// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

func takeAll(b *batch) (taken []int) {
	for i, _, ok := b.take(); ok; i, _, ok = b.take() {
		taken = append(taken, i)
	}
	return taken
}

// Workers take the plans of a batch in order, each once, and no more after a failure or after an
// oracle was violated on which the exploration stops.
func TestBatch(t *testing.T) {
	newBatch := func(n int, until ...oracle.Name) (*batch, *[]string) {
		var reports []string
		b := &batch{plans: make([]fault.Plan, n), outcomes: make([]Outcome, n), until: until, known: map[string]bool{}}
		b.progress = func(p Progress) {
			reports = append(reports, strings.Repeat("x", p.Bad)+strings.Repeat("-", p.Done-p.Bad)+strings.Repeat(".", p.Total-p.Done))
		}
		return b, &reports
	}
	bad := Outcome{Violations: []oracle.Violation{violation(oracle.NoLeak, "a")}}

	b, reports := newBatch(3)
	if got := takeAll(b); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("taken: %v", got)
	}
	b.finish(2, Outcome{Requests: 7})
	b.finish(0, bad)
	if b.outcomes[2].Requests != 7 || len(b.outcomes[0].Violations) != 1 {
		t.Errorf("outcomes: %v", b.outcomes)
	}
	if diff := cmp.Diff([]string{"-..", "x-."}, *reports); diff != "" {
		t.Error(diff)
	}

	b, _ = newBatch(3, oracle.SameEnd)
	b.take()
	if b.finish(0, bad); b.enough {
		t.Error("another oracle stops the exploration")
	}
	b, _ = newBatch(3, oracle.SameEnd, oracle.NoLeak)
	b.take()
	if b.finish(0, bad); !b.enough || len(takeAll(b)) > 0 {
		t.Error("the exploration does not stop")
	}
	b, _ = newBatch(3)
	if b.fail(errors.New("no worker")); len(takeAll(b)) > 0 {
		t.Error("plans are run after a failure")
	}
}

// Several workers take the plans of one batch, each plan once.
func TestBatchOfSeveralWorkers(t *testing.T) {
	b := &batch{plans: make([]fault.Plan, 100), outcomes: make([]Outcome, 100), progress: func(Progress) {}, known: map[string]bool{}}
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for range 4 {
		group.Go(func() {
			for _, i := range takeAll(b) {
				mu.Lock()
				seen[i]++
				mu.Unlock()
				b.finish(i, Outcome{})
			}
		})
	}
	if group.Wait(); len(seen) != 100 || b.done != 100 {
		t.Errorf("%d plans were taken, %d finished", len(seen), b.done)
	}
}

// A batch that is stopped begins no more plans, and those that are ended for it count as not run.
func TestBatchIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found []string
		b := &batch{
			plans: make([]fault.Plan, 5), outcomes: make([]Outcome, 5), order: []int{4, 3, 2, 1, 0}, progress: func(Progress) {},
			stop: NewStopper(time.Now().Add(10 * time.Second)), known: map[string]bool{}, found: func(p fault.Plan, _ oracle.Violation) { found = append(found, p.String()) },
		}
		first, _, _ := b.take()
		second, _, _ := b.take()
		if first != 4 || second != 3 {
			t.Errorf("plans %d and %d were begun, want 4 and 3", first, second)
		}
		shown := Outcome{Plan: "x", Violations: []oracle.Violation{violation(oracle.NoLeak, "a")}}
		if !b.learn(4, shown) || b.learn(2, shown) {
			t.Error("the first violation of a kind is new, and no other one")
		}
		b.finish(4, shown)
		time.Sleep(8 * time.Second)
		if i, _, ok := b.take(); ok {
			t.Errorf("plan %d was begun", i)
		}
		b.finish(2, shown)
		b.finish(3, Outcome{Unfinished: true})
		if b.done != 2 || b.outcomes[3].Plan != "" || len(found) != 1 {
			t.Errorf("%d plans are done, found %v", b.done, found)
		}
	})
}
