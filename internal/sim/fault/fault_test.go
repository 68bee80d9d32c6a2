// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Every kind of fault has a text form that reads back.
func TestFaultsReadBack(t *testing.T) {
	for _, kind := range Kinds() {
		f := Fault{Kind: kind, At: 3, Of: "backups.demo.example.com default/x", By: 2, For: 90 * time.Second}
		if kind.Point() == AtEvent || kind == RestartInPast {
			f.Of = "jobs.batch"
		}
		if answers := kind.entry().answers; len(answers) > 0 {
			f.How = answers[len(answers)-1]
		}
		read, err := Parse(f.String())
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if read.String() != f.String() || read.Kind != kind {
			t.Errorf("%q reads as %q", f, read)
		}
	}
}

// Each kind of fault has one entry, and every entry strikes somewhere.
func TestEachKindHasOneEntry(t *testing.T) {
	seen := map[Kind]bool{}
	for _, e := range table {
		if seen[e.kind] || e.point == 0 {
			t.Errorf("%q: second entry %t, point %d", e.pattern, seen[e.kind], e.point)
		}
		seen[e.kind] = true
	}
	for k := CrashBeforeWrite; k <= ProveIdle; k++ {
		if !seen[k] {
			t.Errorf("kind %d has no entry", k)
		}
	}
}

func TestWrongPlansSayWhatIsMeant(t *testing.T) {
	tests := map[string]string{
		"crash write 3":          `did you mean "crash before write {at}"`,
		"refuse write 3: 418":    "known are 409, 429, 403",
		"refuse write 3: 404":    `unknown answer "404"`,
		"seed many":              `"many" is not a number`,
		"eat write 3":            "docs/simulator-reference.md",
		"slow call 3 by a while": "unknown fault",
	}
	for text, want := range tests {
		if _, err := ParsePlan(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", text, err, want)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	for _, e := range table {
		f.Add(e.pattern)
	}
	canonical := []string{"no fault", "seed 7", "crash after write 3", "seed 2; crash before call 1; delay the watch of jobs.batch by 2 from event 1", `seed 1; change shop/a spec.name: changed, "a\u003bb"; crash after write 1`}
	for _, text := range append(canonical, "seed 1; crash after write 99999999999999999999") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePlan(text)
		if err != nil {
			return
		}
		again, err := ParsePlan(p.String())
		if err != nil || again.String() != p.String() || slices.Contains(canonical, text) && p.String() != text {
			t.Errorf("%q reads as %q, which reads as %q (%v)", text, p, again, err)
		}
	})
}
