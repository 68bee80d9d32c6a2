// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// A document that was written and read is the same.
func TestRoundTrip(t *testing.T) {
	want := &Document{Version: Version, Simulations: []Simulation{*simulation(fabricated(t))}}
	var b bytes.Buffer
	if err := want.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !got.Bad() || (&Document{Simulations: []Simulation{{}}}).Bad() {
		t.Error("the wrong documents have findings")
	}
	golden.Compare(t, "report.json", text)
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{"{": "reading a report", `{"version": 2}`: "has version 2", "{}": "has version 0"} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func outcomes() *rapid.Generator[[]Outcome] {
	violations := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) oracle.Violation {
		v := violation(rapid.SampledFrom([]oracle.Name{oracle.NoLeak, oracle.SameEnd, oracle.SaysWhy, oracle.TransitionTime}).Draw(t, "oracle"),
			fmt.Sprintf("widget %s", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "object")))
		if v.Oracle == oracle.SameEnd {
			v.Differences = []oracle.Difference{{Thing: v.Text, Path: ".spec.x", Want: "1"}}
		}
		return v
	}), 0, 3)
	return rapid.Custom(func(t *rapid.T) []Outcome {
		list := make([]Outcome, rapid.IntRange(1, 40).Draw(t, "plans"))
		for i := range list {
			f := fault.Fault{Kind: fault.CrashAfterWrite, At: i}
			list[i] = Outcome{Order: i, Plan: fault.Plan{Faults: []fault.Fault{f, f}[:rapid.IntRange(0, 2).Draw(t, "faults")]}, Requests: i, Violations: violations.Draw(t, "violations")}
			for j := range list[i].Violations {
				list[i].Writes = append(list[i].Writes, at("a.go", rapid.IntRange(1, 2).Draw(t, "line"), "", fmt.Sprint("write ", j)))
			}
		}
		return list
	})
}

// Merging the shards of a simulation gives what one machine would have reported, in whichever order
// they are merged, and at once or one after the other.
func TestMergingShardsGivesTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := outcomes().Draw(t, "outcomes")
		want := simulation(all)
		n := rapid.IntRange(1, 4).Draw(t, "shards")
		parts := make([][]Outcome, n)
		for _, o := range all {
			i := rapid.IntRange(0, n-1).Draw(t, "shard")
			parts[i] = append(parts[i], o)
		}
		var documents []*Document
		for i, part := range parts {
			s := simulation(part)
			s.Shards, s.Seconds = []string{fmt.Sprintf("%d/%d", i+1, n)}, 12.5/float64(n)
			documents = append(documents, &Document{Simulations: []Simulation{*s}})
		}
		documents = rapid.Permutation(documents).Draw(t, "order")
		first := rapid.IntRange(1, n).Draw(t, "first")
		some, err := Merge(documents[:first]...)
		if err != nil {
			t.Fatal(err)
		}
		if first < n && len(some.Simulations[0].Shards) != first {
			t.Fatalf("%d of %d shards: %v", first, n, some.Simulations[0].Shards)
		}
		merged, err := Merge(append([]*Document{some}, documents[first:]...)...)
		if err != nil {
			t.Fatal(err)
		}
		got := merged.Simulations[0]
		got.Seconds = want.Seconds // a sum of fractions
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestMergeRefuses(t *testing.T) {
	document := func(shards ...string) *Document {
		return &Document{Simulations: []Simulation{{Package: "p", Test: "TestX", Number: 1, Shards: shards}}}
	}
	tests := map[string]struct {
		documents []*Document
		want      string
	}{
		"the same shard":    {[]*Document{document("1/2"), document("1/2")}, "shard 1/2 of TestX of p is there twice"},
		"a whole and one":   {[]*Document{document(), document("1/2")}, "TestX of p is there twice, and not as shards of one run"},
		"a different split": {[]*Document{document("1/2"), document("2/3")}, "split in different ways: shards 1/2 and 2/3"},
	}
	for name, tt := range tests {
		if _, err := Merge(tt.documents...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	other := document()
	other.Simulations[0].Number = 2
	merged, err := Merge(other, document())
	if err != nil || len(merged.Simulations) != 2 || merged.Simulations[0].Number != 1 || merged.Simulations[1].Title() != "TestX #2" {
		t.Errorf("two simulations of a test: %+v, %v", merged, err)
	}
}

// The page needs nothing but itself, and what operators write into it stays text.
func TestGoldenPage(t *testing.T) {
	s := simulation(fabricated(t))
	s.Stopped, s.Plans.Total, s.Shards = TimeLimit, 1073, []string{"1/2"}
	s.Findings[0].Example.What = `widgets <script>alert("x")</script> is gone`
	s.Findings[0].Example.Note = "only without streaming lists"
	d := &Document{Simulations: []Simulation{*s, {Test: "TestGood", Package: "example.com/op/controllers", Number: 1}}}
	var b strings.Builder
	if err := d.HTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{"<script", "http://", "https://", "ZgotmplZ"} {
		if strings.Contains(b.String(), forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	golden.Compare(t, "report.html", b.String())
}
