// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/bench/table"
)

func TestParse(t *testing.T) {
	few := func(rounds, objects, burst, serial, repairs, cached int) sizes {
		return sizes{rounds: rounds, objects: objects, burst: burst, serial: serial, repairs: repairs, cached: cached,
			latency: 50 * time.Millisecond, interval: 20 * time.Second}
	}
	outside := few(5, 1000, 200, 20, 20, 10_000)
	outside.outside, outside.latency, outside.interval = true, time.Second, time.Minute
	tests := []struct {
		args    string
		want    sizes
		rivals  string
		wantErr string
	}{
		{args: "", want: few(5, 1000, 200, 20, 20, 10_000), rivals: "limit,ctrlkit,ctrlkit-policy,handlers,careful,careful-concurrent,careful-ryw,apply-always,usual,wrangler"},
		{args: "-quick -operators usual,careful", want: few(1, 100, 40, 5, 1, 500), rivals: "careful,usual"},
		{args: "-rounds 3 -quick -burst 50 -operators careful", want: few(3, 100, 50, 5, 1, 500), rivals: "careful"},
		{args: "-objects 5000 -operators careful-unstripped", want: few(5, 5000, 200, 20, 20, 10_000), rivals: "careful-unstripped"},
		{args: "-burst 500 -repairs 100 -cached 20 -operators wrangler", want: few(5, 1000, 500, 20, 100, 20), rivals: "wrangler"},
		{args: "-operators careful,carefull", wantErr: `no operator "carefull"`},
		{args: "-operators careful -rival /tmp/theirs", want: few(5, 1000, 200, 20, 20, 10_000), rivals: "careful,theirs"},
		{args: "-rival /tmp/wrangler", wantErr: "the name of another operator"},
		{args: "-rival operator", wantErr: "the name of another operator"},
		{args: "-outside -latency 1s -poll 1m -rival /tmp/theirs", want: outside, rivals: "external,theirs"},
		{args: "-outside -operators careful", wantErr: `no operator "careful": there are external`},
		{args: "-poll 1ms", wantErr: "a second at least"},
		{args: "-rounds 0", wantErr: "at least 1"},
		{args: "-cached 0", wantErr: "at least 1"},
		{args: "-reference carefull", wantErr: "names no operator"},
		{args: "-reference careful,usual", wantErr: "names no operator"},
		{args: "quick", wantErr: "no arguments"},
	}
	for _, test := range tests {
		c, err := parse(strings.Fields(test.args), io.Discard)
		if test.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("%q: error %v, want %q", test.args, err, test.wantErr)
			}
			continue
		}
		if err != nil || c.sizes != test.want || namesOf(c.rivals) != test.rivals {
			t.Errorf("%q: %+v, %s, error %v, want %+v, %s", test.args, c.sizes, namesOf(c.rivals), err, test.want, test.rivals)
		}
	}
}

func TestHelpShowsExamples(t *testing.T) {
	var out strings.Builder
	if _, err := parse([]string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"go run ./measure -quick", "-rounds", "-operators", "-objects", "-repairs", "-cached", "-reference", "-json", "-outside"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not have %q", want)
		}
	}
}

// Each row has an ID of its own and a limit, unless it is printed beside another, which exists.
func TestRows(t *testing.T) {
	for _, s := range []sizes{{objects: 1000, burst: 200, repairs: 20, cached: 10_000}, {objects: 1000, burst: 200, outside: true}} {
		checkRows(t, s.rows())
	}
}

func checkRows(t *testing.T, rows []table.Row) {
	beside, seen := make(map[string]bool), make(map[string]bool)
	for _, row := range rows {
		beside[row.Beside] = true
		if seen[row.ID] {
			t.Errorf("two rows are %q", row.ID)
		}
		seen[row.ID] = true
	}
	for _, row := range rows {
		if row.Limit == "" && !beside[row.ID] {
			t.Errorf("%q has no limit", row.ID)
		}
		if row.Beside != "" && !seen[row.Beside] {
			t.Errorf("%q has no row %q beside it", row.ID, row.Beside)
		}
	}
}

// What differs between rivals is said of each.
func TestRivals(t *testing.T) {
	said := make(map[string]string)
	for _, r := range slices.Concat(rivals.all, outsideRivals.all) {
		if r.setting == "" || said[r.setting] != "" {
			t.Errorf("%s has the setting %q, as %q", r.name, r.setting, said[r.setting])
		}
		said[r.setting] = r.name
	}
	if diff := cmp.Diff(1, strings.Count(namesOf(rivals.all)+",", rivals.reference+",")); diff != "" {
		t.Errorf("reference: %s", diff)
	}
}

// Times before the beginning and after the last interval do not count.
func TestHistogram(t *testing.T) {
	since := time.Unix(100, 0)
	at := func(ms int) time.Time { return since.Add(time.Duration(ms) * time.Millisecond) }
	got := histogram([]time.Time{at(-1), at(0), at(99), at(100), at(250), at(300)}, since, 100*time.Millisecond, 3)
	if !slices.Equal(got, []int{2, 1, 1}) {
		t.Errorf("got %v", got)
	}
}
