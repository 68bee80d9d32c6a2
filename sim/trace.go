// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// A Trace is what happened in one run, in order.
type Trace struct {
	start time.Time

	mu      sync.Mutex
	entries []TraceEntry
	logs    []string
}

// A TraceEntry is one thing that happened.
type TraceEntry struct {
	At    time.Duration // since the run began, in virtual time
	Actor string        // operator, operator-2, user, other, server, sim
	What  string        // read, write 3, call 2, event, fault, ...
	Text  string
}

func (e TraceEntry) String() string {
	return fmt.Sprintf("%12s  %-10s  %-9s  %s", e.At.Round(time.Millisecond), e.Actor, e.What, e.Text)
}

func (t *Trace) add(actor, what, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, TraceEntry{At: time.Since(t.start), Actor: actor, What: what, Text: text})
}

func (t *Trace) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries)
}

// Entries returns what happened, in order.
func (t *Trace) Entries() []TraceEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]TraceEntry(nil), t.entries...)
}

// String returns the trace, a line per entry.
func (t *Trace) String() string {
	var b strings.Builder
	for _, e := range t.Entries() {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Logs returns what the operator logged, in order. Lines of goroutines that run at the same time may change places between runs, which is why
// they are not in the trace.
func (t *Trace) Logs() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.logs...)
}

func (t *Trace) logger(actor string) logr.Logger {
	return funcr.New(func(prefix, args string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		line := fmt.Sprintf("%12s  %-10s  ", time.Since(t.start).Round(time.Millisecond), actor)
		if prefix != "" {
			line += prefix + " "
		}
		t.logs = append(t.logs, line+args)
	}, funcr.Options{})
}
