// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package termsvg

import (
	"context"
	"strings"
	"testing"
	"time"
)

func shown(t *testing.T, c Cast) string {
	t.Helper()
	frames, _, err := c.frames(time.Millisecond, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return screen(frames[len(frames)-1])
}

func TestRecord(t *testing.T) {
	c, err := Record(t.Context(), Size{40, 5}, []string{"sh", "-c", `test -t 1 && stty size && printf 'caf\303\251 \033[1mbold\033[0m'; exit 3`}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := shown(t, c), "5 40\ncafé.bold"; got != want {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

// After its time the command receives Ctrl-C, as from a person, and may still print something.
func TestRecordPressesCtrlC(t *testing.T) {
	script := []string{"sh", "-c", `trap 'echo bye; exit' INT; echo hello; while :; do sleep 0.05; done`}
	c, err := Record(t.Context(), Size{40, 5}, script, 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(t, c); !strings.Contains(got, "hello") || !strings.Contains(got, "bye") {
		t.Errorf("the terminal shows %q, want hello and bye", got)
	}
}

func TestRecordEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Record(ctx, Size{40, 5}, []string{"sleep", "600"}, time.Hour); err != nil {
		t.Fatal(err)
	}
}

func TestRecordOfNothing(t *testing.T) {
	for name, command := range map[string][]string{"no command": nil, "no such command": {"/nowhere/none"}} {
		if _, err := Record(t.Context(), Size{40, 5}, command, time.Minute); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Record(t.Context(), Size{}, []string{"true"}, time.Minute); err == nil {
		t.Error("no size: no error")
	}
}

func TestWholeRunes(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "é": 2, "a\xc3": 1, "a\xe2\x94": 1, "├": 3, "\xff": 1, "a\x80": 2} {
		if got := wholeRunes([]byte(text)); got != want {
			t.Errorf("%q: %d whole bytes, want %d", text, got, want)
		}
	}
}
