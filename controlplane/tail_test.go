// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTailKeepsTheLastLinesHoweverTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[a-c]{0,3}`)).Draw(t, "lines")
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		text := strings.Join(lines, "\n")
		if len(lines) > 0 {
			text += "\n"
		}
		kept := newTail(limit)
		for remaining := text; remaining != ""; {
			n := rapid.IntRange(1, len(remaining)).Draw(t, "n")
			if _, err := io.WriteString(kept, remaining[:n]); err != nil {
				t.Fatal(err)
			}
			remaining = remaining[n:]
		}
		want := strings.Join(lines[max(0, len(lines)-limit):], "\n")
		if got := kept.String(); got != want {
			t.Errorf("after %q the last %d lines are %q, want %q", text, limit, got, want)
		}
	})
}

func TestTailShowsAnIncompleteLine(t *testing.T) {
	kept := newTail(2)
	io.WriteString(kept, "a\nb\nc") //nolint:errcheck // never fails
	if got, want := kept.String(), "a\nb\nc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
