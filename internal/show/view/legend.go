// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A legend says what symbols of a timeline mean.
type legend struct {
	Title   string
	Symbols []symbol
}

type symbol struct{ Symbol, Text string }

// causesInWords are the causes with what the legend says of their symbols, in its order.
var causesInWords = []struct {
	kind journal.CauseKind
	text string
}{
	{journal.CauseOwnChange, "the object changed"}, {journal.CauseOwnWrite, "the operator's own write"}, {journal.CauseChildChange, "a child"},
	{journal.CauseForeignChange, "another object"}, {journal.CauseTimer, "a requeue"}, {journal.CauseBackoff, "a retry"},
	{journal.CauseStart, "the first reconcile"}, {journal.CauseUnknown, "not recorded"},
}

// marksInWords are the symbols of marks with what the legend says of them.
var marksInWords = []symbol{
	{"▲", "a write"}, {"△", "a write without an effect"}, {"✗", "a write that failed"}, {"◈", "a call outside"}, {"▽", "a live read"}, {"♨", "a hot loop"},
}

// legendOf returns what the symbols mean that a timeline of some reconciles has.
func legendOf(all []*reconcile) []legend {
	results, causes, marks := legend{Title: "Results:"}, legend{Title: "Causes:"}, legend{Title: "Marks:"}
	kinds, symbols := map[journal.CauseKind]bool{}, map[string]bool{}
	for _, r := range all {
		_, s, word := r.tone()
		if result := (symbol{s, word}); !slices.Contains(results.Symbols, result) {
			results.Symbols = append(results.Symbols, result)
		}
		for _, c := range r.causes[:min(1, len(r.causes))] {
			kinds[c.Kind] = true
		}
		for i := range r.marks {
			symbols[r.marks[i].symbol()] = true
		}
	}
	for _, c := range causesInWords {
		if kinds[c.kind] {
			causes.Symbols = append(causes.Symbols, symbol{causeSymbols[c.kind], c.text})
		}
	}
	for _, m := range marksInWords {
		if symbols[m.Symbol] {
			marks.Symbols = append(marks.Symbols, m)
		}
	}
	return slices.DeleteFunc([]legend{results, causes, marks}, func(l legend) bool { return len(l.Symbols) == 0 })
}
