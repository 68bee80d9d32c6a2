// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// progress is what sim.Run reports while it works.
type progress struct {
	Test             string
	Done, Total, Bad int
	Line             string // these numbers, how fast it is, and how long it will take
	Found            string
	Summary          string
	Elapsed          time.Duration
}

// progressWriter shows progress. In a terminal the line of the progress is replaced by the next
// one.
type progressWriter struct {
	w        io.Writer
	terminal bool
	open     bool // the last line is one that is replaced
}

func newProgressWriter(w io.Writer) *progressWriter {
	return &progressWriter{w: w, terminal: isTerminal(w)}
}

func (p *progressWriter) show(m progress) {
	switch {
	case m.Summary != "":
		p.clear()
	case m.Found != "":
		p.clear()
		fmt.Fprintln(p.w, m.Found)
	case p.terminal:
		p.line("%s: %s", m.Test, m.Line)
	default:
		fmt.Fprintf(p.w, "%s: %s\n", m.Test, m.Line)
	}
}

// line shows a line that the next one replaces, in a terminal.
func (p *progressWriter) line(format string, args ...any) {
	if !p.terminal {
		return
	}
	p.clear()
	fmt.Fprintf(p.w, format, args...)
	p.open = true
}

// clear removes the line that is replaced.
func (p *progressWriter) clear() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}

// showProgress shows the progress in the file until ctx is done, and returns the last of each test,
// which has a summary if the test has ended.
func showProgress(ctx context.Context, w *progressWriter, file string) []progress {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read from
	lines := bufio.NewReader(f)
	var all []progress
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	partial := "" // of a line
	for last := false; ; {
		text, err := lines.ReadString('\n')
		partial += text
		if err == nil {
			var p progress
			if json.Unmarshal([]byte(partial), &p) == nil {
				w.show(p)
				all = update(all, p)
			}
			partial = ""
			continue
		}
		if last {
			w.clear()
			return all
		}
		select {
		case <-ctx.Done():
			last = true
		case <-ticker.C:
		}
	}
}

// update replaces the progress of a test that has not ended, or adds it.
func update(all []progress, p progress) []progress {
	for i := range all {
		if all[i].Test == p.Test && all[i].Summary == "" {
			if p.Found == "" { // with it, there are no numbers
				all[i] = p
			}
			return all
		}
	}
	return append(all, p)
}

// table prints the results of the simulations, and how far those came that did not end. failed says
// that go test has failed.
func table(w io.Writer, all []progress, failed bool) {
	switch {
	case len(all) == 0 && failed:
		fmt.Fprintln(w, "no simulation was run: go test failed before one had begun, and says why above")
		return
	case len(all) == 0:
		fmt.Fprintln(w, "no simulation was run: does a test of these packages call sim.Run?")
		return
	}
	width := len("simulation")
	for _, p := range all {
		width = max(width, len(p.Test))
	}
	fmt.Fprintf(w, "\n%-*s  %6s  %8s  %s\n", width, "simulation", "plans", "findings", "time")
	for _, p := range all {
		if p.Summary == "" {
			fmt.Fprintf(w, "%-*s  %6d  %8d  stopped after %d of %d plans\n", width, p.Test, p.Done, p.Bad, p.Done, p.Total)
			continue
		}
		fmt.Fprintf(w, "%-*s  %6d  %8d  %s\n", width, p.Test, p.Done, p.Bad, p.Elapsed.Round(100*time.Millisecond))
		for _, line := range strings.Split(p.Summary, "\n")[1:] {
			fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", width), line)
		}
	}
	if failed && !slices.ContainsFunc(all, func(p progress) bool { return p.Bad > 0 || p.Summary == "" || p.Done < p.Total }) {
		fmt.Fprintln(w, "go test failed, although no simulation has findings: another test of these packages failed, see above; --run leaves it out")
	}
}
