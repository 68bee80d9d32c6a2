// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	r := &report{
		example: "x",
		checks: []check{
			figure("runs seen", "%d", 3),
			{name: "runs twice"},
			{name: "outputs", seen: "1 wrong, of 2", violations: []violation{{object: "RWExternal soak-01", lane: 1, evidence: "is 4, want 3"}}},
		},
		errors: []string{"Reconciler error: conflict"},
		edits:  func(lane, _ int) []string { return []string{"9s deleted", "10s created"} },
	}
	var out strings.Builder
	r.print(&out)
	want := `x            runs seen   3
x  ok        runs twice  0
x  VIOLATED  outputs     1 wrong, of 2

outputs: 1 violations
  RWExternal soak-01: is 4, want 3
    the last edits: 9s deleted; 10s created

errors in the log of the operator, some of them:
  Reconciler error: conflict
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if r.violations() != 1 {
		t.Errorf("%d violations, want 1", r.violations())
	}
}

// Of a hundred objects with the same trouble, some are enough; how many there are is said.
func TestReportIsShort(t *testing.T) {
	r := &report{checks: []check{{name: "Ready", violations: make([]violation, 100)}}}
	var out strings.Builder
	r.print(&out)
	if lines := strings.Count(out.String(), "\n"); lines != 1+2+printedViolations+1 || !strings.Contains(out.String(), "... and 90 more") {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}

// Memory that grows by a third in the quiet is not steady.
func TestMemoryCheck(t *testing.T) {
	for _, test := range []struct {
		quiet, end int64
		violations int
		figure     bool
	}{
		{quiet: 50e6, end: 64e6},
		{quiet: 50e6, end: 66e6, violations: 1},
		{end: 66e6, figure: true}, // the quiet was too short
	} {
		s := &soaking{}
		s.memory.quiet, s.memory.end = test.quiet, test.end
		if c := s.memoryCheck(); len(c.violations) != test.violations || c.figure != test.figure {
			t.Errorf("%d and then %d: %+v", test.quiet, test.end, c)
		}
	}
}
