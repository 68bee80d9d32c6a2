// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
)

// errorLines is how many of a program's last lines an error quotes.
const errorLines = 15

// A tail keeps the last lines written to it.
type tail struct {
	mu      sync.Mutex // guards what follows
	limit   int
	lines   []string
	partial []byte // an incomplete line
}

func newTail(limit int) *tail {
	return &tail{limit: limit}
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partial = append(t.partial, p...)
	for {
		line, partial, found := bytes.Cut(t.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		t.partial = partial
		t.lines = append(t.lines, string(line))
		t.lines = t.lines[max(0, len(t.lines)-t.limit):]
	}
}

// String returns the last lines, including an incomplete one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.Join(t.lines, "\n")
	if len(t.partial) > 0 {
		text = strings.TrimPrefix(text+"\n"+string(t.partial), "\n")
	}
	return text
}

// tailOfFile returns the last lines of a file, or nothing if it cannot be read.
func tailOfFile(name string) string {
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	kept := newTail(errorLines)
	if _, err := io.Copy(kept, file); err != nil {
		return ""
	}
	return kept.String()
}
