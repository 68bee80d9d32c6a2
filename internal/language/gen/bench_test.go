// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
)

// largeDocument has 20 states and 40 actions, each of which is given two states.
func largeDocument() string {
	var text strings.Builder
	text.WriteString("bind controller-kit-demo/v1 controller-kit-demo/api/v1\n\nalias CronJob controller-kit-demo/v1/CronJob\n\ndecl Large for CronJob {\n    state {\n")
	for i := range 20 {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&text, "        state%d []Job {\n            labels/cronjob=${target.Name}\n            fields/.metadata.controller=${target.Name}\n            owned\n        }\n", i)
		case 1:
			fmt.Fprintf(&text, "        state%d Pod {\n            name=${target.Name}-%d-${target.Namespace}\n        }\n", i, i)
		case 2:
			fmt.Fprintf(&text, "        state%d []Pod {\n            labels/number=n%d\n            labels/cronjob=${target.Name}\n        }\n", i, i)
		case 3:
			fmt.Fprintf(&text, "        state%d []Pod {\n            namespace=*\n            fields/.spec.nodeName=${target.Spec.Schedule}\n        }\n", i)
		}
	}
	text.WriteString("    }\n\n    action {\n")
	for i := range 40 {
		fmt.Fprintf(&text, "        // Action%d does what has to be done.\n        Action%d(state%d, state%d)\n", i, i, i/2, (i/2+1)%20)
	}
	text.WriteString("    }\n}\n")
	return text.String()
}

// checkLarge checks the text.
func checkLarge(b *testing.B, dir string, loader check.Loader) *model.Package {
	b.Helper()
	pkg, list, err := check.Check(b.Context(), check.Input{
		Dir: dir, Name: "large", Path: "controller-kit-demo/large",
		Sources: []check.Source{{File: "large.ctrlkit", Text: []byte(largeDocument())}},
	}, loader)
	if err != nil || list.HasErrors() {
		b.Fatalf("%v, %v", err, list)
	}
	return pkg
}

// BenchmarkLarge shows the stages for a document of 20 states and 40 actions: parsing, checking with
// packages that were loaded before, checking with the go command loading them each time from a warm
// build cache, and generating.
func BenchmarkLarge(b *testing.B) {
	dir := b.TempDir()
	if err := checktest.WriteModule(dir); err != nil {
		b.Fatal(err)
	}
	b.Setenv("GOFLAGS", "-mod=mod")
	b.Setenv("GOWORK", "off")
	src, pkg := []byte(largeDocument()), checkLarge(b, dir, checktest.Loader{})
	for _, stage := range []struct {
		name string
		run  func(b *testing.B)
	}{
		{"parse", func(*testing.B) { parser.Parse("large.ctrlkit", src) }},
		{"check", func(b *testing.B) { checkLarge(b, dir, checktest.Loader{}) }},
		{"load", func(b *testing.B) { checkLarge(b, dir, check.GoLoader{}) }},
		{"generate", func(b *testing.B) {
			if _, err := Generate(pkg); err != nil {
				b.Fatal(err)
			}
		}},
	} {
		b.Run(stage.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				stage.run(b)
			}
		})
	}
}

// hugeModel has n states and n actions.
func hugeModel(n int) *model.Package {
	var states []*model.State
	var actions []*model.Action
	for i := range n {
		st := list(fmt.Sprintf("state%d", i), pod, label("n", strconv.Itoa(i)), controlledBy(ref("Name")))
		if i%2 == 0 {
			st = one(fmt.Sprintf("state%d", i), secret, named(ref("Name"), "-", strconv.Itoa(i)), owned)
		}
		states = append(states, st)
		actions = append(actions, action(fmt.Sprintf("Action%d", i), states[i], states[i/2]))
		actions[i].States = slices.Compact(actions[i].States)
	}
	return packageOf("huge", document("huge.ctrlkit", manager("Huge", shop, states, actions...)))
}

// TestCostIsLinear compares the memory that is allocated for a document with that for one of eight
// times its size. It cannot see work without allocation; BenchmarkHuge can.
func TestCostIsLinear(t *testing.T) {
	allocated := func(n int) float64 {
		pkg := hugeModel(n)
		return testing.AllocsPerRun(1, func() {
			if _, err := Generate(pkg); err != nil {
				t.Fatal(err)
			}
		})
	}
	if small, large := allocated(10), allocated(80); large > 10*small {
		t.Errorf("8 times the states and actions take %.1f times the allocations", large/small)
	}
}

// BenchmarkHuge generates the Go of documents of growing size: the time for each state stays about
// the same.
func BenchmarkHuge(b *testing.B) {
	for _, n := range []int{500, 5_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			pkg := hugeModel(n)
			for b.Loop() {
				if _, err := Generate(pkg); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/state")
		})
	}
}
