// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// An idle engine takes a tenth of the time that the comparisons by hand take.
func TestRestTakesATenth(t *testing.T) {
	rings.Explore(t, "measures time")
	var byHand, idle *runningOperator
	for _, o := range operatorsInTurn() {
		switch o.name {
		case "by hand":
			byHand = o.start(t, 1)
			defer byHand.stop()
		case "engine":
			idle = o.start(t, 1)
			defer idle.stop()
		}
	}
	each := func(r *runningOperator) float64 {
		result := testing.Benchmark(r.measure)
		return float64(result.T.Nanoseconds()) / float64(result.N)
	}
	best := 1.0
	for range 3 { // the machine has other work, too
		hand, engine := each(byHand), each(idle)
		t.Logf("by hand %.0f ns, idle %.0f ns", hand, engine)
		if best = min(best, engine/hand); best <= 0.1 {
			return
		}
	}
	t.Errorf("an idle engine takes %.3f of the time by hand, want at most 0.1", best)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
