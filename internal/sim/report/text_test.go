// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// A finding lists the differences that its text does not have.
func TestDifferencesInFull(t *testing.T) {
	missing := oracle.Difference{Thing: "secrets default/db", Want: "there"}
	all := []oracle.Difference{missing}
	for range 30 {
		all = append(all, oracle.Difference{Thing: "pods default/db-0", Path: ".status.phase", Want: "Running"})
	}
	s := &Simulation{}
	text := s.InFull(Finding{Oracle: oracle.SameEnd, Example: Example{What: "the cluster is not as without the fault", Differences: all}}, Style{})
	for _, want := range []string{"- secrets default/db is missing\n", "\n  and 11 other differences"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	text = s.InFull(Finding{Oracle: oracle.SameEnd, Example: Example{What: missing.String(), Differences: all[:1]}}, Style{})
	if strings.Count(text, missing.String()) != 1 {
		t.Errorf("the difference is there twice:\n%s", text)
	}
}

// A simulation that has run next to nothing is no success.
func TestTooFew(t *testing.T) {
	for _, tt := range []struct {
		stopped    string
		run, total int
		want       bool
	}{
		{"budget 10m", 1, 1520, true}, {"budget 1h0m0s", 300, 1520, false}, {"", 3, 3, false}, {"budget 10s", 4, 5, true}, {"budget smoke", 4, 500, false}, {Sample, 4, 100, false}, {Enough, 8, 320, false},
	} {
		s := &Simulation{Stopped: tt.stopped, Plans: Plans{Run: tt.run, Total: tt.total}}
		if got := s.TooFew(); got != tt.want {
			t.Errorf("%+v: got %t", tt, got)
		}
	}
}
