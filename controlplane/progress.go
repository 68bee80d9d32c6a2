// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	redrawInterval = 200 * time.Millisecond // of the line in a terminal
	lineInterval   = 10 * time.Second       // between lines elsewhere
)

// A progress reports the progress of a long operation to a person or a log.
type progress struct {
	out      io.Writer
	terminal bool
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}
	file, ok := out.(*os.File)
	return &progress{out: out, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// line writes a line that stays.
func (p *progress) line(text string) {
	fmt.Fprintln(p.out, text)
}

// show writes the result of text repeatedly, until stop is called. In a terminal, stop erases the
// line. It may be called more than once.
func (p *progress) show(text func() string) (stop func()) {
	if !p.terminal {
		p.line(text())
		return p.repeat(lineInterval, func() { p.line(text()) }, func() {})
	}
	draw := func() { fmt.Fprintf(p.out, "\r\x1b[K%s", text()) }
	draw()
	return p.repeat(redrawInterval, draw, func() { fmt.Fprint(p.out, "\r\x1b[K") })
}

// repeat calls tick at each interval until stop is called, which waits for a running tick and calls
// last.
func (p *progress) repeat(interval time.Duration, tick, last func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				tick()
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
		last()
	})
}

// A compilation counts the packages in the output of `go build -v`.
type compilation struct {
	started time.Time
	total   int   // packages to compile
	words   *tail // the output that is not the name of a package

	mu      sync.Mutex // guards what follows
	done    int
	partial []byte // an incomplete line
}

// Write counts the lines that name a package and keeps the others.
func (c *compilation) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partial = append(c.partial, p...)
	for {
		line, partial, found := bytes.Cut(c.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		c.partial = partial
		if isPackagePath(string(line)) {
			c.done++
			continue
		}
		fmt.Fprintf(c.words, "%s\n", line)
	}
}

// isPackagePath reports whether a line is a package path. Messages of compilers and linkers have
// spaces, colons, tabs or a leading #.
func isPackagePath(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :\t#")
}

// String describes the progress of the compilation.
func (c *compilation) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := time.Since(c.started).Round(time.Second)
	if c.done >= c.total {
		return fmt.Sprintf("building the control plane: linking (%s)", elapsed)
	}
	return fmt.Sprintf("building the control plane: %d of %d packages compiled (%s)", c.done, c.total, elapsed)
}
