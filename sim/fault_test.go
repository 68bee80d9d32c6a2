// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Every kind of fault has a text form that reads back.
func TestFaultsReadBack(t *testing.T) {
	for _, kind := range Kinds() {
		f := Fault{Kind: kind, At: 3, Of: "backups.demo.example.com default/x", By: 2, For: 90 * time.Second}
		if kind.info().point == atEvent || kind == RestartInPast {
			f.Of = "jobs.batch"
		}
		if answers := answersOf[kind]; len(answers) > 0 {
			f.How = answers[len(answers)-1]
		}
		read, err := ParseFault(f.String())
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if read.String() != f.String() || read.Kind != kind {
			t.Errorf("%q reads as %q", f, read)
		}
	}
}

func TestPlansReadBack(t *testing.T) {
	for _, text := range []string{"no fault", "seed 7", "crash after write 3", "seed 2; crash before call 1; lag jobs.batch by 2 from event 1"} {
		p, err := ParsePlan(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, p.String()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWrongPlansSayWhatIsMeant(t *testing.T) {
	tests := map[string]string{
		"crash write 3":          `did you mean "crash before write {at}"`,
		"refuse write 3: 418":    "known are 409, 429, 403",
		"seed many":              `"many" is not a number`,
		"eat write 3":            "docs/simulator.md",
		"slow call 3 by a while": "unknown fault",
	}
	for text, want := range tests {
		if _, err := ParsePlan(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", text, err, want)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	for _, info := range kindTable {
		f.Add(info.pattern)
	}
	f.Add("seed 1; crash after write 99999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePlan(text)
		if err != nil {
			return
		}
		again, err := ParsePlan(p.String())
		if err != nil || again.String() != p.String() {
			t.Errorf("%q reads as %q, which reads as %q (%v)", text, p, again, err)
		}
	})
}
