// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
)

// A symbol has one color on the whole page: for objects, their steps and their reconciles.
func TestSymbolsHaveOneColor(t *testing.T) {
	tones := map[string]string{}
	see := func(what, symbol, tone string) {
		t.Helper()
		if before, ok := tones[symbol]; ok && before != tone {
			t.Errorf("%s: %s is %s, and elsewhere %s", what, symbol, tone, before)
		}
		tones[symbol] = tone
	}
	for _, s := range States() {
		see(string(s), s.Mark(), s.Class())
	}
	for state, tone := range tonesOfStates {
		see("a step that is "+state, (&explanation.Step{State: state}).Mark(), tone.Look().Class)
	}
	for _, e := range endings {
		see("a reconcile that is "+e.word, e.symbol, e.tone)
	}
}

// docs/operate.md has the states with their symbols, in their order.
func TestStatesAreInTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| | state | meaning |\n|---|---|---|\n")
	for _, s := range States() {
		row := fmt.Sprintf("| `%s` | %s | ", s.Mark(), s)
		if !strings.HasPrefix(table, row) {
			t.Fatalf("docs/operate.md has no row %q here:\n%.200s", row, table)
		}
		_, table, _ = strings.Cut(table, "\n")
	}
}
