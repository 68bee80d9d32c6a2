// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// With little time, each kind of fault is tried before one is tried again as often, those that find
// more before others, at places all over the run; pairs come last.
func TestTellingOrder(t *testing.T) {
	plans := mustParse(t,
		"crash after write 1; crash after write 2", "crash after write 1", "panic at read 1", "crash after write 2", "refuse write 2: 409",
		"refuse write 2: 500", "refuse write 3: 500", "crash after write 3", "panic at read 2", "crash after write 4", "seed 1")
	at := sites{}
	for n, what := range []string{"", "create x", "update y status", "update y status", "update y"} {
		at[placeKey{point: fault.AtWrite, at: n}] = site{name: what}
	}
	tests := []struct {
		name string
		at   sites
		want []string
	}{
		{"by place", nil, []string{
			"seed 1",
			"refuse write 2: 500", "crash after write 1", "panic at read 1", "refuse write 2: 409", "refuse write 3: 500",
			"crash after write 3", "panic at read 2",
			"crash after write 2",
			"crash after write 4",
			"crash after write 1; crash after write 2",
		}},
		{"by what is written", at, []string{
			"seed 1",
			"refuse write 2: 500", "crash after write 1", "panic at read 1", "refuse write 2: 409", "refuse write 3: 500",
			"crash after write 4", "panic at read 2",
			"crash after write 3",
			"crash after write 2",
			"crash after write 1; crash after write 2",
		}},
	}
	for _, test := range tests {
		var got []string
		for _, i := range telling(plans, test.at) {
			got = append(got, plans[i].String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// A sample has the most telling plans, and some pairs.
func TestSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plans, n := plansOf(t), rapid.IntRange(1, 30).Draw(t, "n")
		got := sample(plans, n)
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) || len(got) > n {
			t.Fatalf("a sample of %d plans is %v", n, got)
		}
		isPair := func(i int) bool { return len(plans[i].Faults) > 1 }
		all, pairs := 0, 0
		for i := range plans {
			if isPair(i) {
				all++
			}
		}
		for _, i := range got {
			if isPair(i) {
				pairs++
			}
		}
		if want := min(n/5, all); pairs != want {
			t.Errorf("%d of %d pairs are in a sample of %d, want %d", pairs, all, n, want)
		}
		if want := min(n-pairs, len(plans)-all); len(got)-pairs != want {
			t.Errorf("%d others are in a sample of %d of %d plans, want %d", len(got)-pairs, n, len(plans), want)
		}
	})
}

func plansOf(t *rapid.T) []fault.Plan {
	kinds := []fault.Kind{fault.CrashAfterWrite, fault.PanicAtRead, fault.RefuseWrite, fault.Drift}
	single := rapid.Custom(func(t *rapid.T) fault.Fault {
		return fault.Fault{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), At: rapid.IntRange(1, 50).Draw(t, "at")}
	})
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) fault.Plan {
		return fault.Plan{Seed: rapid.Uint64Max(3).Draw(t, "seed"), Faults: rapid.SliceOfN(single, 0, 2).Draw(t, "faults")}
	})).Draw(t, "plans")
}

// The order changes nothing about which plans there are, and shards have each plan once.
func TestShardsHaveAllPlansOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plans := plansOf(t)
		all := make([]int, len(plans))
		for i := range all {
			all[i] = i
		}
		order := telling(plans, nil)
		slices.Sort(order)
		if !slices.Equal(order, all) {
			t.Fatalf("the order of %d plans is %v", len(plans), order)
		}
		n := rapid.IntRange(1, 9).Draw(t, "shards")
		var union []int
		for i := 1; i <= n; i++ {
			part := Shard{i, n}.of(plans, nil)
			if len(part) > len(plans)/n+1 || !slices.IsSorted(part) {
				t.Fatalf("shard %d of %d has %d of %d plans: %v", i, n, len(part), len(plans), part)
			}
			if !slices.Equal(part, (Shard{i, n}).of(plans, nil)) {
				t.Fatal("a shard has other plans the next time")
			}
			union = append(union, part...)
		}
		slices.Sort(union)
		if !slices.Equal(union, all) {
			t.Fatalf("%d shards have the plans %v", n, union)
		}
		if !slices.Equal(Shard{}.of(plans, nil), all) {
			t.Fatal("without shards, plans are missing")
		}
	})
}

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{"": {}, "1/1": {1, 1}, "2/4": {2, 4}, "4/4": {4, 4}} {
		if got, err := ParseShard(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0/4", "5/4", "2", "/", "a/b", "2/4/6", "-1/2"} {
		if got, err := ParseShard(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
