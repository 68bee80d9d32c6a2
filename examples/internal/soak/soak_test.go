// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A moment of one example on a real control plane. `make soak` is the long one.
func TestSoak(t *testing.T) {
	rings.Test(t, "starts a control plane")
	soakExample(t, "-example 02_simple -chaos 5s -quiet 2s -kill-every 2s,3s")
}

// A short soak of each example.
func TestSoakOfAll(t *testing.T) {
	rings.Explore(t, "takes a minute")
	var group sync.WaitGroup
	for _, e := range examples {
		// All at once, although they are more than the parallel tests that a small machine allows:
		// mostly they wait.
		group.Go(func() { soakExample(t, "-chaos 16s -quiet 14s -every 10s -kill-every 3s,6s -example "+e.name) })
	}
	group.Wait()
}

func soakExample(t *testing.T, args string) {
	t.Helper()
	var out, errOut strings.Builder
	code := run(t.Context(), strings.Fields("-objects 5 -seed 1 "+args), &out, &errOut)
	t.Logf("%s%s", errOut.String(), out.String())
	if code != exitKept {
		t.Errorf("%s: exit code %d, want %d", args, code, exitKept)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
