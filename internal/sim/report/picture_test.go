// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
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

// A picture has both runs, with what is the same in the same columns, and says where they part, what
// the fault was and which write is wrong.
func TestPicture(t *testing.T) {
	with := slices.Concat(without[:3], []string{
		"         2ms  operator           fault      refuse read 1: 500 <script>",
		"         4ms  operator           write 1    delete widgets.example.com default/w -> 404 NotFound: gone",
	}, without[6:], []string{"     2m0.00s  sim                oracle     same-end: it is not what it is without the fault"})
	e := &Example{Trace: with, Write: &Write{What: "write 1", Actor: "operator", Stack: []Site{{File: "operator.go", Line: 42, Function: "reconcile"}}}}
	columns, difference := choose(align(momentsOf(without), momentsOf(with)))
	if difference != 2 || len(columns) != 9 || columns[7].with == nil || columns[7].without == nil {
		t.Errorf("%d columns, the first difference is %d", len(columns), difference)
	}
	text := string(picture(without, e))
	for _, want := range []string{">without the fault<", ">with it<", "⚡", "&lt;script&gt;", "operator.go:42", `class="wrong"`, `class="violation"`, ">delete widgets w → 404<", ">same-end<", ">buckets create bucket-1<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q:\n%s", want, text)
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("it is no XML: %v\n%s", err, text)
		}
	}
	for name, p := range map[string]string{
		"no trace": string(picture(without, &Example{})), "no other": string(picture(nil, e)), "the same": string(picture(without, &Example{Trace: without})),
	} {
		if p != "" {
			t.Errorf("%s: there is a picture:\n%s", name, p)
		}
	}
}

// Columns have all moments of both runs in their order, and a long run is drawn with its end.
func TestAlign(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		run := func() []moment {
			all := make([]moment, r.IntN(90))
			for i := range all {
				all[i] = moment{actor: "operator", what: "write", text: string(rune('a' + r.IntN(6)))}
			}
			return all
		}
		a, b := run(), run()
		all := align(a, b)
		var gotA, gotB []moment
		for _, c := range all {
			if c.without != nil {
				gotA = append(gotA, *c.without)
			}
			if c.with != nil {
				gotB = append(gotB, *c.with)
			}
			if c.with != nil && c.without != nil && c.with.text != c.without.text {
				t.Fatalf("seed %d: %v and %v are in one column", seed, c.with, c.without)
			}
		}
		if !slices.Equal(a, gotA) || !slices.Equal(b, gotB) {
			t.Fatalf("seed %d: moments are lost or in another order", seed)
		}
		chosen, _ := choose(all)
		if n := len(chosen); n > columnsBefore+columnsFirst+columnsLast+2 || n > 0 && chosen[n-1] != all[len(all)-1] {
			t.Errorf("seed %d: %d columns of %d", seed, n, len(all))
		}
	}
}
