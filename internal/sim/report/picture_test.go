// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var without = []string{
	"          0s  user               write      create widgets.example.com default/w -> 201",
	"          0s  operator           start",
	"         1ms  operator           watch      watch widgets.example.com",
	"         2ms  operator           read 1     get secrets default/credentials -> 200",
	"         3ms  operator           call 1     buckets create bucket-1 -> ok",
	"         4ms  operator           write 1    update widgets.example.com default/w status -> 200",
	"     1m0.00s  sim                check      checkpoint 1",
}

// A picture has what is the same in both runs once, with the middle folded, and what differs side by
// side, and says what the fault was and which write is wrong.
func TestPicture(t *testing.T) {
	with := slices.Concat(without[:3], []string{
		"         2ms  operator           fault      refuse read 1: 500 <script>",
		"         4ms  operator           write 1    delete widgets.example.com default/w -> 404 NotFound: gone",
	}, without[6:], []string{"     2m0.00s  sim                oracle     same-end: it is not what it is without the fault"})
	e := &Example{Trace: with, Write: &Write{What: "write 1", Actor: "operator", Stack: []Site{{File: "operator.go", Line: 42, Function: "reconcile"}}}}
	var lines []string
	for _, row := range newPicture(without, e).Rows {
		for _, part := range row {
			for _, d := range slices.Concat(part.First, part.Folded, part.Last) {
				lines = append(lines, strings.TrimSpace(strings.Join([]string{part.Run, d.Class, d.Symbol, d.Text, d.Site}, " ")))
			}
		}
	}
	want := []string{
		"same write ▲ create widgets default/w",
		"same start ▶ start",
		"without read ▽ get secrets default/credentials",
		"without call ◆ buckets create bucket-1",
		"without write ▲ update widgets default/w status",
		"with fault ⚡ refuse read 1: 500 <script>",
		"with wrong ▲ delete widgets default/w → 404 operator.go:42",
		"same check ○ checkpoint 1",
		"with violation ! same-end",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the picture (-want +got):\n%s", diff)
	}
	for name, p := range map[string]*picture{
		"no trace": newPicture(without, &Example{}), "no other": newPicture(nil, e), "the same": newPicture(without, &Example{Trace: without}),
	} {
		if p != nil {
			t.Errorf("%s: there is a picture: %v", name, p)
		}
	}
}

// Of a long run, what is far from where the runs part is folded, and nothing is left out.
func TestPictureOfALongRun(t *testing.T) {
	var before, after []string
	for i := range 400 {
		before = append(before, fmt.Sprintf("%ds operator write %d update widgets w-%d -> 200", i, i+1, i))
	}
	for i := range 100 {
		after = append(after, fmt.Sprintf("%ds operator write %d create secrets s-%d -> 201", 400+i, 400+i, i))
	}
	rows := newPicture(before, &Example{Trace: slices.Concat(before, after)}).Rows
	if len(rows) != 2 || len(rows[0]) != 1 || len(rows[1]) != 2 {
		t.Fatalf("got the rows %v", rows)
	}
	same, with := rows[0][0], rows[1][1]
	if len(same.First) != 0 || len(same.Folded) != 400-sameBefore || len(same.Last) != sameBefore {
		t.Errorf("of what is the same, %d and %d are shown and %d folded", len(same.First), len(same.Last), len(same.Folded))
	}
	if len(with.First) != differFirst || len(with.Folded) != 100-differFirst-differLast || len(with.Last) != differLast {
		t.Errorf("of what differs, %d and %d are shown and %d folded", len(with.First), len(with.Last), len(with.Folded))
	}
}

// Columns have all moments of both runs in their order, and stretches all columns.
func TestAlign(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		run := func() []moment {
			all := make([]moment, r.IntN(90))
			for i := range all {
				all[i] = moment{key: string(rune('a' + r.IntN(6)))}
			}
			return all
		}
		a, b := run(), run()
		var gotA, gotB []moment
		for _, s := range stretches(align(a, b)) {
			gotA, gotB = slices.Concat(gotA, s.Same, s.Without), slices.Concat(gotB, s.Same, s.With)
		}
		if !slices.Equal(a, gotA) || !slices.Equal(b, gotB) {
			t.Fatalf("seed %d: moments are lost or in another order", seed)
		}
	}
}
