// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// problem draws arcs without a circle, and springs.
func problem(t *rapid.T, most int) (n int, arcs []arc, springs []spring) {
	n = rapid.IntRange(2, most).Draw(t, "n")
	for range rapid.IntRange(0, 2*most).Draw(t, "arcs") {
		tail := rapid.IntRange(0, n-2).Draw(t, "tail")
		head := rapid.IntRange(tail+1, n-1).Draw(t, "head")
		arcs = append(arcs, arc{tail, head, rapid.IntRange(0, 2).Draw(t, "length"), rapid.IntRange(0, 3).Draw(t, "cost")})
	}
	for range rapid.IntRange(0, most).Draw(t, "springs") {
		a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
		springs = append(springs, spring{a, b, rapid.IntRange(-2, 2).Draw(t, "offset"), rapid.IntRange(1, 3).Draw(t, "cost")})
	}
	return n, arcs, springs
}

// cost returns what values cost, and whether they respect the arcs.
func cost(values []float64, arcs []arc, springs []spring) (float64, bool) {
	sum := 0.0
	for _, a := range arcs {
		d := values[a.head] - values[a.tail]
		if d < float64(a.length) {
			return 0, false
		}
		sum += d * float64(a.cost)
	}
	for _, s := range springs {
		d := values[s.b] - values[s.a] - float64(s.offset)
		sum += max(d, -d) * float64(s.cost)
	}
	return sum, true
}

func TestValuesRespectTheArcs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, arcs, springs := problem(t, 20)
		if _, ok := cost(balanced(n, arcs, springs), arcs, springs); !ok {
			t.Fatal("an arc is too short")
		}
	})
}

// Of few variables with few values, all combinations can be tried.
func TestNothingIsCheaper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, arcs, springs := problem(t, 4)
		got, _ := cost(balanced(n, arcs, springs), arcs, springs)
		const high = 8
		values := make([]float64, n)
		var try func(i int)
		try = func(i int) {
			if i == n {
				if c, ok := cost(values, arcs, springs); ok && c < got {
					t.Fatalf("%v costs %v, the values that were found %v", values, c, got)
				}
				return
			}
			for v := range high {
				values[i] = float64(v)
				try(i + 1)
			}
		}
		try(1) // the first is zero
	})
}

func TestTheMiddleIsChosen(t *testing.T) {
	arcs := []arc{{tail: 0, head: 1, length: 10, cost: 1}}
	got := balanced(3, arcs, []spring{{a: 2, b: 0, cost: 1}, {a: 2, b: 1, cost: 1}})
	if diff := cmp.Diff([]float64{-5, 0, 5}, []float64{got[0] - got[2], 0, got[1] - got[2]}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
