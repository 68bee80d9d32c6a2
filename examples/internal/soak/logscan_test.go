// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Errors are counted and each kind is kept once; words about errors are none.
func TestLogScan(t *testing.T) {
	var passed strings.Builder
	l := newLogScan(&passed)
	pieces := []string{
		`{"level":"info","msg":"no error here"}` + "\n" + `{"level":"err`, `or","msg":"Reconciler error","error":"conflict on soak-01"}` + "\n",
		`{"level":"error","msg":"Reconciler error","error":"conflict on soak-02"}` + "\n" + `E0102 03:04:05.000000 1 x.go:1] klog` + "\n",
		"Everything is fine\n", `{"level":"error","msg":"Reconciler error","error":"refused"}` + "\n" + "panic: boom\n", `{"level":"error","msg":"killed`,
	}
	for _, piece := range pieces {
		if _, err := l.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	l.cut()
	if _, err := l.Write([]byte(`{"level":"info","msg":"the next process"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	n, samples := l.found()
	if n != 5 {
		t.Errorf("%d errors, want 5", n)
	}
	if diff := cmp.Diff([]string{
		"Reconciler error: conflict on soak-01", `E0102 03:04:05.000000 1 x.go:1] klog`, "Reconciler error: refused", "panic: boom",
	}, samples); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	if !strings.Contains(l.last(), "the next process") || !strings.HasPrefix(passed.String(), pieces[0]) {
		t.Errorf("last %s, passed on %q", l.last(), passed.String())
	}
}
