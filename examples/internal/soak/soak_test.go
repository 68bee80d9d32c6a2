// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/rings"
)

// A short soak of each example on a real control plane. `make soak` is the long one.
func TestSoak(t *testing.T) {
	rings.Test(t, "starts control planes")
	var group sync.WaitGroup
	for _, e := range examples {
		// All at once, although they are more than the parallel tests that a small machine allows:
		// mostly they wait.
		group.Go(func() {
			var out, errOut strings.Builder
			args := "-objects 5 -chaos 16s -quiet 14s -every 10s -kill-every 3s,6s -seed 1 -example " + e.name
			code := run(t.Context(), strings.Fields(args), &out, &errOut)
			t.Logf("%s%s", errOut.String(), out.String())
			if code != exitKept {
				t.Errorf("%s: exit code %d, want %d", e.name, code, exitKept)
			}
		})
	}
	group.Wait()
}
