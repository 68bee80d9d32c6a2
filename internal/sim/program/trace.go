// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"sync"
	"time"
)

// A trace is what happened in one run, in the form of the traces of package sim.
type trace struct {
	start time.Time

	mu    sync.Mutex // guards lines
	lines []string
}

func newTrace() *trace { return &trace{start: time.Now()} }

func (t *trace) add(actor, what, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf("%12s  %-17s  %-9s  %s", time.Since(t.start).Round(time.Millisecond), actor, what, text))
}

func (t *trace) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.lines...)
}
