// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A seed stands for kills and edits, those of other objects of the plan included.
func TestPlansFollowFromTheSeed(t *testing.T) {
	plan := func(seed uint64, e example) (lines []string) {
		o := &options{objects: 10, seed: seed, chaos: 2 * time.Minute, kills: span{8 * time.Second, 21 * time.Second}, edits: span{100 * time.Millisecond, 400 * time.Millisecond}}
		for _, k := range planKills(newRandom(seed, e.name), o.chaos, o.kills) {
			lines = append(lines, fmt.Sprintf("%s kill, down for %s", k.at, k.down))
		}
		for _, ed := range e.subject(&soaking{options: o, system: &system{front: &front{}}}).edits() {
			lines = append(lines, fmt.Sprintf("%s object %d %s", ed.at, ed.lane, ed.what))
		}
		return lines
	}
	for _, e := range examples {
		if diff := cmp.Diff(plan(7, e), plan(7, e)); diff != "" {
			t.Errorf("%s: two plans of one seed differ:\n%s", e.name, diff)
		}
		if cmp.Equal(plan(7, e), plan(8, e)) {
			t.Errorf("%s: the plans of two seeds are equal", e.name)
		}
		if got := len(plan(7, e)); !e.scheduled && got < 300 {
			t.Errorf("%s: a plan of %d kills and edits, want one for each quarter of a second", e.name, got)
		}
	}
}

func TestPlanKills(t *testing.T) {
	pause := span{8 * time.Second, 21 * time.Second}
	for seed := range uint64(100) {
		kills := planKills(newRandom(seed, "test"), 10*time.Minute, pause)
		before := time.Duration(0)
		for _, k := range kills[:len(kills)-1] {
			if gap := k.at - before; gap < pause.least || gap > pause.most {
				t.Errorf("seed %d: %s between two kills, want %s", seed, gap, pause)
			}
			if k.down < 0 || k.down > time.Second {
				t.Errorf("seed %d: the operator is down for %s", seed, k.down)
			}
			before = k.at
		}
		if last := kills[len(kills)-1]; last.at != 10*time.Minute {
			t.Errorf("seed %d: the last kill is at %s, want it at the end", seed, last.at)
		}
	}
}

// Edits of one object are made in their order, also if one takes longer than the time to the next;
// those of others do not wait for it.
func TestEditorKeepsLanesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var made []string
		note := func(what string, takes time.Duration, err error) edit {
			return edit{what: what, apply: func(context.Context, client.Client) error {
				time.Sleep(takes)
				made = append(made, fmt.Sprintf("%s %s", time.Since(start), what))
				return err
			}}
		}
		slow, next, other := note("slow", 5*time.Second, nil), note("next", time.Second, errors.New("refused")), note("other", time.Second, nil)
		slow.at, next.at, other.at, other.lane = time.Second, 2*time.Second, 3*time.Second, 1
		e := &editor{}
		e.run(t.Context(), []edit{slow, next, other}, start)
		if diff := cmp.Diff([]string{"4s other", "6s slow", "7s next"}, made); diff != "" {
			t.Errorf("edits (-want +got):\n%s", diff)
		}
		if e.count() != 3 || len(e.failures) != 1 || e.failures[0].evidence != "next: refused" {
			t.Errorf("%d edits with failures %v, want 3 with one", e.count(), e.failures)
		}
		if diff := cmp.Diff([]string{"7s next"}, e.last(0, 1)); diff != "" {
			t.Errorf("last edits (-want +got):\n%s", diff)
		}
	})
}
