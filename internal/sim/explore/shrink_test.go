// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// Of eight faults, those stay that are needed, wherever they stand, and not many plans are tried.
func TestShrinkOfASwarm(t *testing.T) {
	plan := mustParse(t, "seed 3; refuse write 1: 500; crash after write 2; refuse write 3: 500; refuse read 1: 500; panic at read 2; fail call 1; fail call 2; drift after call 3")[0]
	for _, needed := range [][]int{{0}, {7}, {0, 7}, {0, 1, 2}, {0, 3, 7}, {2, 4, 5}, {1, 3, 5, 6}, {0, 1, 2, 3, 4, 5, 6, 7}} {
		tried := 0
		shows := func(plans []fault.Plan) (int, Outcome, error) {
			tried += len(plans)
			return slices.IndexFunc(plans, func(p fault.Plan) bool {
				return !slices.ContainsFunc(needed, func(i int) bool { return !slices.Contains(p.Faults, plan.Faults[i]) })
			}), Outcome{Plan: "some"}, nil
		}
		got, o, smaller := fewer(plan, shows)
		if len(got.Faults) != len(needed) && len(got.Faults) > 2 || smaller != (len(needed) < 8) || smaller != (o.Plan != "") || got.Seed != 3 {
			t.Errorf("%v of the faults are needed, and %q is left", needed, got)
		}
		if i, _, _ := shows([]fault.Plan{got}); i != 0 {
			t.Errorf("%v of the faults are needed, and %q does not have them", needed, got)
		}
		if tried > maxFewer {
			t.Errorf("%d plans were tried to find that %v of the faults are needed", tried, needed)
		}
	}
}

// The plans that are one step simpler have fewer faults, then no order, and then a milder fault that
// is possible at the place and not left out by the user.
func TestSimpler(t *testing.T) {
	e := &Explorer{
		Places: []fault.Place{
			{Point: fault.AtWrite, At: 3, Write: &fault.Write{Verb: "update", Exists: true, Seen: map[string]int{"jobs.batch": 7}}},
		},
		Allowed: func(k fault.Kind) bool { return k != fault.StopAtWrite },
	}
	tests := map[string][]string{
		"no fault":                        nil,
		"crash after write 3":             nil, // a stop is left out
		"seed 2; crash after write 3":     {"crash after write 3"},
		"seed 1; miss event 2 of secrets": {"miss event 2 of secrets", "seed 1; delay the watch of secrets by 1 from event 2", "seed 1; delay event 2 of secrets"},
		"crash before write 3; fail call 1": {
			"crash before write 3", "fail call 1", "refuse write 3: 500; fail call 1", "crash before write 3; throttle call 1",
		},
		"restart 4 events in the past of jobs.batch after write 3; second leader from write 5": {
			"restart 4 events in the past of jobs.batch after write 3", "second leader from write 5",
			"crash after write 3; second leader from write 5", "restart 4 events in the past of jobs.batch after write 3; crash after write 5",
		},
		"delay the watch of secrets by 5 from event 1": {
			"delay the watch of secrets by 1 from event 1", "delay the watch of secrets by 2 from event 1",
		},
	}
	for text, want := range tests {
		if diff := cmp.Diff(want, texts(e.simpler(mustParse(t, text)[0]))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	rare := e.simpler(mustParse(t, "restart 4 events in the past of jobs.batch after write 3")[0])
	if got := texts(rare); !slices.Contains(got, "delay the watch of jobs.batch by 1 from event 8") {
		t.Errorf("what the operator has seen at the write is not what is delayed: %q", got)
	}
}

// Two violations are the same if they are of the same kind, or if what differs first in the one
// differs in the other, too.
func TestShows(t *testing.T) {
	difference := func(paths ...string) oracle.Violation {
		v := oracle.Violation{Oracle: oracle.SameEnd}
		for _, path := range paths {
			v.Differences = append(v.Differences, oracle.Difference{Thing: "secrets a/b", Path: path})
		}
		return v
	}
	text := func(name oracle.Name, text string) oracle.Violation {
		return oracle.Violation{Oracle: name, Text: text}
	}
	tests := []struct {
		v, other oracle.Violation
		want     bool
	}{
		{text(oracle.NoLeak, "3 Pods"), text(oracle.NoLeak, "5 Pods"), true},
		{text(oracle.NoLeak, "a Pod"), text(oracle.NoLeak, "a Job"), false},
		{text(oracle.NoLeak, "a Pod"), text(oracle.SameWork, "a Pod"), false},
		{difference(".a", ".b"), difference(".b"), true},
		{difference(".b"), difference(".a", ".b"), false},
		{difference(".a"), difference(".b"), false},
	}
	for _, test := range tests {
		o := Outcome{Violations: []oracle.Violation{test.v}}
		finding := report.Finding{Key: report.Key(test.other, nil), Oracle: test.other.Oracle}
		finding.Example.Differences = test.other.Differences
		if got := shows(o, finding) >= 0; got != test.want {
			t.Errorf("%v and %v: got %t, want %t", test.v, test.other, got, test.want)
		}
	}
}
