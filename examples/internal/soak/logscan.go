// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"sync"
)

// sampledErrors is how many different errors of a log are kept.
const sampledErrors = 5

// A logScan takes what an operator logs, counts the errors in it, and keeps some.
type logScan struct {
	next io.Writer

	mu         sync.Mutex // guards what follows
	unfinished []byte
	lines      []string // the last ones
	errors     int
	samples    []string
	seen       map[string]bool
}

func newLogScan(next io.Writer) *logScan { return &logScan{next: next, seen: make(map[string]bool)} }

// Write takes a piece of the log. The pieces of a process that was killed may end in the middle of
// a line.
func (l *logScan) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unfinished = append(l.unfinished, data...)
	for {
		line, remaining, found := bytes.Cut(l.unfinished, []byte("\n"))
		if !found {
			break
		}
		l.add(string(line))
		l.unfinished = remaining
	}
	return l.next.Write(data)
}

// plainError matches what is not JSON: klog's errors, panics, and the operator's own last word.
var plainError = regexp.MustCompile(`^(E\d{4} |F\d{4} |panic: |fatal error: |error: )`)

// number is what differs between errors of one kind.
var number = regexp.MustCompile(`[0-9]+`)

func (l *logScan) add(line string) {
	const kept = 5
	l.lines = append(l.lines, line)
	l.lines = l.lines[max(0, len(l.lines)-kept):]
	key, sample := line, line
	var entry struct{ Level, Msg, Error string }
	if err := json.Unmarshal([]byte(line), &entry); err == nil {
		switch entry.Level {
		case "error", "dpanic", "panic", "fatal":
		default:
			return
		}
		sample = fmt.Sprintf("%s: %s", entry.Msg, entry.Error)
		key = number.ReplaceAllString(sample, "N")
	} else if !plainError.MatchString(line) {
		return
	}
	l.errors++
	if !l.seen[key] && len(l.samples) < sampledErrors {
		l.seen[key] = true
		l.samples = append(l.samples, sample)
	}
}

// cut ends the log of a process, and the line at which it was killed.
func (l *logScan) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unfinished, l.lines = nil, nil
}

// found returns how many errors there were, and one of each kind.
func (l *logScan) found() (n int, samples []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors, append([]string(nil), l.samples...)
}

// last returns the last lines.
func (l *logScan) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%q", l.lines)
}
