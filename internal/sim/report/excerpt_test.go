// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func traceOf(lines ...string) []string {
	var trace []string
	for i, line := range lines {
		trace = append(trace, fmt.Sprintf("%11ds  operator    %s", i, line))
	}
	return trace
}

// An excerpt has the fault, what is about the object, and the writes around the fault, but neither
// the watches nor the events of other objects, and nothing after the violation.
func TestExcerpt(t *testing.T) {
	trace := traceOf(
		"start", "watch      watch secrets", "write 1    create configmaps default/y -> 201", "event      ADDED configmaps default/y",
		"read 1     get pods default/z -> 200", "read 2     get pods default/z -> 200",
		"fault      crash after write 2", "event      ADDED pods default/z", "read 3     get pods default/z -> 200", "read 4     get secrets default/x -> 404",
		"event      MODIFIED secrets default/xy", "write 3    create secrets default/x -> 201", "idle       resync", "oracle     same-end: it differs",
		"event      a", "event      b", "event      c", "write 4    update secrets default/x -> 200",
	)
	got := excerpt(trace, 13, []string{"secrets default/x"})
	want := []string{
		trace[0], "    ... 1 line ...", trace[2], "    ... 1 line ...", trace[4], trace[5], trace[6], trace[7], trace[8], trace[9],
		"    ... 1 line ...", trace[11], "    ... 1 line ...", trace[13], trace[14], trace[15], "    ... 2 lines ...",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A long trace is cut: the faults and the violation stay, and what is nearest to them.
func TestLongExcerpts(t *testing.T) {
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("write %d    update secrets default/x -> 200", i))
	}
	lines[100], lines[290] = "fault      crash after write 2", "oracle     same-end: it differs"
	got := excerpt(traceOf(lines...), 290, []string{"secrets default/x"})
	shown := 0
	for _, line := range got {
		if !strings.Contains(line, "...") {
			shown++
		}
	}
	text := strings.Join(got, "\n")
	if shown != maxExcerpt || !strings.Contains(text, "crash after") || !strings.Contains(text, "it differs") || !strings.Contains(text, "write 99 ") {
		t.Errorf("%d lines are shown:\n%s", shown, text)
	}
	// Without a fault and without a place, the beginning and the end are shown.
	if got := excerpt(traceOf("start", "write 1    x"), 1000, nil); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestCut(t *testing.T) {
	trace := traceOf(make([]string, maxTrace)...)
	if diff := cmp.Diff(trace, cut(trace)); diff != "" {
		t.Error(diff)
	}
	long := traceOf(make([]string, maxTrace+7)...)
	got := cut(long)
	if len(got) != maxTrace+1 || got[maxTrace/2] != "    ... 7 lines, which -sim.plan prints ..." || got[maxTrace] != long[maxTrace+6] {
		t.Errorf("%d lines, the middle one is %q, the last one %q", len(got), got[maxTrace/2], got[len(got)-1])
	}
}

func TestMentions(t *testing.T) {
	for line, want := range map[string]bool{
		"create secrets default/x -> 201": true, "ADDED secrets default/x": true, "update secrets default/xy -> 200": false, "secrets other/x": false,
	} {
		if got := mentions(line, "secrets default/x"); got != want {
			t.Errorf("%s: got %t", line, got)
		}
	}
	if !mentions("create pods default/x-abcde -> 201", "pods default/x-*") {
		t.Error("a generated name is not found")
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1073: "1,073", 1234567: "1,234,567"} {
		if got := number(n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := plural(1, "plan") + ", " + plural(2, "plan") + ", " + shorten("abcdef", 5); got != "1 plan, 2 plans, ab..." {
		t.Errorf("got %s", got)
	}
}
