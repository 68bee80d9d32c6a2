// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

func TestSpread(t *testing.T) {
	tests := []struct {
		samples []float64
		want    Spread
		ok      bool
	}{
		{nil, Spread{}, false},
		{[]float64{3}, Spread{3, 3, 3}, true},
		{[]float64{9, 1, 4}, Spread{4, 1, 9}, true},
		{[]float64{4, 1, 2, 9}, Spread{3, 1, 9}, true},
		{[]float64{0, 0}, Spread{0, 0, 0}, true},
	}
	for _, test := range tests {
		got, ok := SpreadOf(test.samples)
		if got != test.want || ok != test.ok {
			t.Errorf("spread of %v: %v, %v, want %v, %v", test.samples, got, ok, test.want, test.ok)
		}
	}
	samples := []float64{3, 1, 2}
	if SpreadOf(samples); samples[0] != 3 {
		t.Error("the samples were sorted in place")
	}
}

// What is relative is so within one round: a machine that was slower in one round does not count.
func TestRelativeIsWithinARound(t *testing.T) {
	table := Table{Reference: "careful"}
	for round, careful := range []float64{10, 20, 40} {
		table.Add("ready", "careful", round, careful)
		table.Add("ready", "half", round, careful/2)
	}
	if diff := cmp.Diff([]float64{0.5, 0.5, 0.5}, table.Relative("ready", "half")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	table.Add("ready", "other", 1, 30) // in one round only
	table.Add("ready", "other", 3, 30) // not of the reference
	if diff := cmp.Diff([]float64{1.5}, table.Relative("ready", "other")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	table.Add("ready", "careful", 1, 0)
	if got := table.Relative("ready", "other"); got != nil {
		t.Errorf("divided by zero: %v", got)
	}
}

func TestGolden(t *testing.T) {
	table := example()
	golden(t, "table.md", table.WriteMarkdown)
	golden(t, "table.json", table.WriteJSON)
}

// example has what a table can have: rows of counts with and without reads, rows in which more is
// better, cells that were not measured or only in some rounds, spread and none.
func example() *Table {
	table := &Table{
		About:     []Fact{{"Kubernetes", "v1.36.3"}, {"cores", "2"}},
		Reference: "careful",
		Operators: []Operator{{"limit", "The least."}, {"ctrlkit", "With steps."}, {"careful", "By hand."}},
		Rows: []Row{
			{ID: "create.writes", Title: "requests: create", Beside: "create.gets", BesideUnit: "GET", Digits: 1, Limit: "5, and no GET: one for each object."},
			{ID: "create.gets", Title: "live reads: create"},
			{ID: "ready", Title: "create to Ready", Unit: "ms", Digits: 1, Relative: true, Limit: "What the API server takes."},
			{ID: "rate", Title: "objects per second", Unit: "/s", Relative: true, More: true},
			{ID: "heap", Title: "heap per object", Unit: "kB", Digits: 1, Relative: true},
		},
	}
	for round := range 3 {
		table.Add("create.writes", "limit", round, 4)
		table.Add("create.writes", "ctrlkit", round, 5)
		table.Add("create.gets", "ctrlkit", round, 1)
		table.Add("create.writes", "careful", round, 5+float64(round%2))
		table.Add("create.gets", "careful", round, 0)
		table.Add("ready", "careful", round, 20+float64(round))
		table.Add("ready", "ctrlkit", round, 15)
		table.Add("rate", "careful", round, 100)
		table.Add("rate", "limit", round, 200)
	}
	table.Add("ready", "limit", 1, 10.5)
	table.Add("heap", "ctrlkit", 0, 9.96)
	return table
}

func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil { //nolint:gosec // a golden file is public
			t.Fatal(err)
		}
		t.Errorf("%s is rewritten: read it", file)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestQuantile(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	tests := []struct {
		samples []float64
		q, want float64
	}{
		{nil, 0.99, 0},
		{[]float64{7}, 0.99, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{3, 1, 2}, 0.99, 3},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred, 0, 1},
	}
	for _, test := range tests {
		if got := Quantile(test.samples, test.q); got != test.want {
			t.Errorf("quantile %v of %d samples: %v, want %v", test.q, len(test.samples), got, test.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the samples are sorted in place")
	}
}
