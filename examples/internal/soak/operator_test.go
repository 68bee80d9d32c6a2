// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A kill is no crash, and it is followed by another process.
func TestOperatorIsKilledAndStartedAgain(t *testing.T) {
	o, stop := startTested(t, "sleep", "60")
	defer stop()
	must(t, o.kill(t.Context(), 0, "60"))
	first := o.process()
	must(t, o.kill(t.Context(), 0, "60"))
	if second := o.process(); first == 0 || second == 0 || first == second {
		t.Errorf("processes %d and %d, want two", first, second)
	}
	if o.killed() != 2 || len(o.ends()) != 0 {
		t.Errorf("%d kills and the ends %v, want two kills alone", o.killed(), o.ends())
	}
}

// An operator that ends by itself is found out.
func TestOperatorEndsByItself(t *testing.T) {
	o, stop := startTested(t, "sh", "-c", "echo 'error: no such cluster' >&2; exit 3")
	var ends []violation
	for len(ends) == 0 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond) // another process can't be synchronized with
		ends = o.ends()
	}
	stop()
	if !strings.Contains(ends[0].evidence, "exit status 3") || !strings.Contains(ends[0].evidence, "no such cluster") {
		t.Errorf("ends %v, want one with its exit status and its last words", ends)
	}
}

// An operator that has ended is not killed: it is found out, however late that is noticed.
func TestOperatorEndsBeforeItIsKilled(t *testing.T) {
	o := newOperator("sh", nil, newLogScan(io.Discard))
	cmd, ended, err := o.start([]string{"-c", "exit 3"})
	must(t, err)
	wait := make(chan error, 1)
	wait <- <-ended // it ends by itself, before end is called
	o.end(cmd, wait)
	if ends := o.ends(); len(ends) != 1 || !strings.Contains(ends[0].evidence, "exit status 3") {
		t.Errorf("ends %v, want one with its exit status", ends)
	}
}

// startTested runs a program as an operator, until stop is called.
func startTested(t *testing.T, binary string, args ...string) (o *operator, stop func()) {
	t.Helper()
	return startNamed(t, "", binary, args...)
}

func startNamed(t *testing.T, name, binary string, args ...string) (o *operator, stop func()) {
	t.Helper()
	o = newOperator(binary, nil, newLogScan(io.Discard))
	o.name, o.args = name, args
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.run(ctx)
	}()
	return o, func() {
		cancel()
		<-ended
	}
}

func TestResidentIn(t *testing.T) {
	tests := map[string]int64{
		"Name:\tx\nVmHWM:\t   70000 kB\nVmRSS:\t   58112 kB\nThreads:\t9\n": 58112 << 10,
		"Name:\tx\nState:\tZ (zombie)\n":                                    0,
		"VmRSS:\t5 MB\n":                                                    0,
	}
	for status, want := range tests {
		if got := residentIn(status); got != want {
			t.Errorf("residentIn(%q) = %d, want %d", status, got, want)
		}
	}
}

func TestRequestsBetween(t *testing.T) {
	read := func(metrics string) map[string]int {
		requests, err := requestsIn(strings.NewReader(metrics))
		must(t, err)
		return requests
	}
	before := read(`# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="127.0.0.1:1",method="GET"} 12
rest_client_requests_total{code="404",host="127.0.0.1:1",method="GET"} 1
process_open_fds 9
`)
	if diff := cmp.Diff(map[string]int{"GET": 13}, before); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	after := read(`# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="127.0.0.1:1",method="GET"} 1.3e+01
rest_client_requests_total{code="201",host="127.0.0.1:1",method="POST"} 4
`)
	if got := requestsBetween(before, after); got != "4 POST" {
		t.Errorf("requestsBetween = %q, want 4 POST", got)
	}
	if got := requestsBetween(after, after); got != "none" {
		t.Errorf("requestsBetween = %q, want none", got)
	}
}
