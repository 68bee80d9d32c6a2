// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
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
