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

// A progress tells a person, or a log, how something long gets on.
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

// line writes one line that stays.
func (p *progress) line(text string) {
	fmt.Fprintln(p.out, text)
}

// show writes what text returns, again and again until stop is called. In a
// terminal the line is then erased. Stop may be called more than once.
func (p *progress) show(text func() string) (stop func()) {
	if !p.terminal {
		p.line(text())
		return p.repeat(lineInterval, func() { p.line(text()) }, func() {})
	}
	draw := func() { fmt.Fprintf(p.out, "\r\x1b[K%s", text()) }
	draw()
	return p.repeat(redrawInterval, draw, func() { fmt.Fprint(p.out, "\r\x1b[K") })
}

// repeat calls tick at each interval until the returned function is called,
// which waits for the last tick and calls last.
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

// A compilation reads what `go build -v` writes, and counts.
type compilation struct {
	started time.Time
	total   int   // packages to compile
	words   *tail // what was said that is not the name of a package

	mu   sync.Mutex // guards what follows
	done int
	rest []byte // a line that is not yet complete
}

// Write counts the lines that name a package and keeps the others.
func (c *compilation) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, p...)
	for {
		line, rest, found := bytes.Cut(c.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		c.rest = rest
		if isPackagePath(string(line)) {
			c.done++
			continue
		}
		fmt.Fprintf(c.words, "%s\n", line)
	}
}

// isPackagePath tells a package's name from an error: compilers and linkers
// speak with spaces, colons, tabs or a leading #.
func isPackagePath(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :\t#")
}

// String tells how far the compilation is.
func (c *compilation) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := time.Since(c.started).Round(time.Second)
	if c.done >= c.total {
		return fmt.Sprintf("building the control plane: linking (%s)", elapsed)
	}
	return fmt.Sprintf("building the control plane: %d of %d packages compiled (%s)", c.done, c.total, elapsed)
}
