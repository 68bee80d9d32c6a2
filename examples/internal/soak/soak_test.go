package main

import (
	"strings"
	"testing"
)

// A short soak of each example on a real control plane. `make soak` is the long one.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			var out, errOut strings.Builder
			args := "-objects 5 -chaos 20s -calm 15s -every 10s -kill-every 3s,6s -seed 1 -example " + e.name
			code := run(t.Context(), strings.Fields(args), &out, &errOut)
			t.Logf("%s%s", errOut.String(), out.String())
			if code != exitKept {
				t.Errorf("exit code %d, want %d", code, exitKept)
			}
		})
	}
}
