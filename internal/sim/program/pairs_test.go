// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

func parsed(t *testing.T, text string) fault.Plan {
	t.Helper()
	p, err := fault.ParsePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Pairs come after the plans of one fault, each once, and the same seed chooses the same.
func TestPairsOf(t *testing.T) {
	var singles []fault.Plan
	for _, text := range []string{"crash before write 1", "crash after write 1", "crash before write 1", "refuse read 1: 429", "resync and restart at checkpoint 1"} {
		singles = append(singles, parsed(t, text))
	}
	list := func(n int, seed uint64) (all []string) {
		var said string
		o := &Options{Pairs: n, Seed: seed, Progress: func(text string) { said = text }}
		for _, p := range o.plans(&reference{plans: singles}) {
			all = append(all, p.String())
		}
		if wants := n > 0; wants != strings.HasSuffix(said, "chosen by the seed 7") && seed == 7 {
			t.Errorf("%d pairs: said %q", n, said)
		}
		return all
	}
	if diff := cmp.Diff(list(0, 7), list(3, 7)[:5]); diff != "" {
		t.Errorf("with pairs, the plans of one fault are others: %s", diff)
	}
	if diff := cmp.Diff(list(3, 7), list(3, 7)); diff != "" {
		t.Errorf("two lists of one seed: %s", diff)
	}
	if cmp.Equal(list(3, 7), list(3, 8)) {
		t.Error("two seeds choose the same pairs")
	}
	all := list(100, 7)[5:]
	for _, text := range all {
		if strings.Count(text, ";") != 1 || strings.Count(text, "crash before write 1") > 1 {
			t.Errorf("got the pair %q", text)
		}
	}
	if len(all) != 9 { // of ten, one is of a fault with itself
		t.Errorf("got %d pairs: %q", len(all), all)
	}
	if pairs := pairsOf(singles[:1], 3, 1); pairs != nil {
		t.Errorf("one plan has the pairs %v", pairs)
	}
}
