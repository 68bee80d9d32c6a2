// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace records what happens in one run of a simulation.
package trace

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// New returns an empty trace of a run that begins now.
func New() *Trace { return &Trace{Start: time.Now()} }

// A Trace is what happened in one run, in order. A nil Trace records nothing.
type Trace struct {
	Start time.Time

	mu      sync.Mutex // guards what follows
	entries []Entry
	logs    []string
}

// An Entry is one thing that happened.
type Entry struct {
	At    time.Duration // since the run began, in virtual time
	Actor string        // operator, operator-2, user, other, server, sim
	What  string        // read, write 3, call 2, event, fault, ...
	Text  string
}

func (e Entry) String() string {
	return fmt.Sprintf("%12s  %-17s  %-9s  %s", e.At.Round(time.Millisecond), e.Actor, e.What, e.Text)
}

// Add records that something happened.
func (t *Trace) Add(actor, what, text string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, Entry{At: time.Since(t.Start), Actor: actor, What: what, Text: text})
}

// Len returns how many entries there are.
func (t *Trace) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries)
}

// Entries returns what happened, in order.
func (t *Trace) Entries() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Entry(nil), t.entries...)
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

// Logs returns what the operator logged, in order. Lines of goroutines that run at the same time
// may change places between runs, which is why they are not in the trace.
func (t *Trace) Logs() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.logs...)
}

// Logger returns a logger whose lines [Trace.Logs] returns.
func (t *Trace) Logger(actor string) logr.Logger {
	return funcr.New(func(prefix, args string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		line := fmt.Sprintf("%12s  %-17s  ", time.Since(t.Start).Round(time.Millisecond), actor)
		if prefix != "" {
			line += prefix + " "
		}
		t.logs = append(t.logs, line+args)
	}, funcr.Options{})
}
