// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	r := newTable([]int{10, 100})
	r.add("a", "linear", 10, 2)
	r.add("a", "linear", 100, 20)
	r.add("a", "square", 10, 1)
	r.add("a", "square", 100, 100)
	r.add("a", "unfinished", 10, 1)
	var text strings.Builder
	if err := r.write(&text); err != nil {
		t.Fatal(err)
	}
	want := `| operator | | 10 | 100 | for each object |
|---|---|--:|--:|--:|
| a | linear | 2.00 | 20.00 | 1.00 |
| a | square | 1.00 | 100.00 | 10.00 |
| a | unfinished | 1.00 | |  |
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSizes(t *testing.T) {
	if got, err := parseSizes("10, 100"); err != nil || !cmp.Equal(got, []int{10, 100}) {
		t.Error(got, err)
	}
	for _, wrong := range []string{"", "x", "0", "100,10"} {
		if _, err := parseSizes(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
