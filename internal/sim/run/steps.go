// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/ctrlkit/ctrlkit/internal/gobuild"
)

// steps reports the progress of the set-up: a line for each finished step and, on a terminal, a
// line for each one that runs, which is redrawn in place. Steps may run at the same time.
type steps struct {
	out      io.Writer
	colors   bool
	terminal bool
	width    func() int

	mu      sync.Mutex // guards what follows and out
	running []*step    // on a terminal
	drawn   int        // lines of them
	covered bool       // by a picture, which has these lines
}

const (
	labelWidth   = 15
	spinInterval = 120 * time.Millisecond
	tellInterval = 10 * time.Second // between the lines of a step where nothing can be redrawn
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// remark writes a line between the steps. On a terminal, sentences that are too long for it continue
// below their beginning; commands, which are pasted, are left to the terminal.
func (s *steps) remark(label, text string) {
	lines := []string{text}
	if s.terminal && strings.Contains(text, ", ") {
		lines = wrap(text, s.width()-labelWidth-3)
	}
	fmt.Fprintf(s, "%s %s%s\n", paint(s.colors, dim, "→"), padRight(label, labelWidth), strings.Join(lines, "\n"+strings.Repeat(" ", labelWidth+2)))
}

// Write writes whole lines above those of the steps that run.
func (s *steps) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	defer s.draw()
	return s.out.Write(data)
}

// erase removes the lines of the steps that run, and draw draws them. Their callers hold mu.
func (s *steps) erase() {
	if s.drawn > 0 {
		fmt.Fprint(s.out, "\r\x1b[K"+strings.Repeat("\x1b[A\x1b[K", s.drawn-1))
	}
	s.drawn = 0
}

func (s *steps) draw() {
	if s.covered {
		return
	}
	var text strings.Builder
	if s.drawn > 1 {
		fmt.Fprintf(&text, "\x1b[%dA", s.drawn-1)
	}
	for i, st := range s.running {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "\r%s\x1b[K", st.line())
	}
	s.drawn = len(s.running)
	fmt.Fprint(s.out, text.String())
}

// cover leaves the terminal, if there is one, to a picture, until the returned function is called:
// lines that stay go to out, and the picture shows [steps.lines].
func (s *steps) cover(out io.Writer) (uncover func()) {
	if !s.terminal {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	terminal := s.out
	s.out, s.covered = out, true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.out, s.covered = terminal, false
	}
}

// lines returns the lines of the steps that run, on a terminal.
func (s *steps) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, st := range s.running {
		lines = append(lines, st.line())
	}
	return lines
}

// wrap breaks text between words, into lines of a width in cells at most, unless a word is wider.
func wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && runewidth.StringWidth(lines[last])+1+runewidth.StringWidth(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// step is one step of the set-up. Its methods done, skip and quit end it.
type step struct {
	steps *steps
	label string
	begun time.Time
	stop  func()

	mu   sync.Mutex // guards note
	note func() string
}

var _ gobuild.Display = (*step)(nil)

// begin starts a step. The label names what the step provides.
func (s *steps) begin(label, note string) *step {
	st := &step{steps: s, label: label, begun: time.Now()}
	st.say(note)
	if s.terminal {
		st.stop = st.spin()
	} else {
		st.stop = st.tell()
	}
	return st
}

// tell writes what the step does now and then, until the returned function is called: in a log,
// minutes without a line look like a hang.
func (st *step) tell() (stop func()) {
	return gobuild.Repeat(tellInterval, tellInterval, func() {
		fmt.Fprintf(st.steps, "… %s%s (%s)\n", padRight(st.label, labelWidth), st.current(), age(time.Since(st.begun)))
	}, func() {})
}

// spin redraws the line of the step until the returned function is called, which erases it.
func (st *step) spin() (stop func()) {
	s := st.steps
	s.mu.Lock()
	s.running = append(s.running, st)
	s.mu.Unlock()
	return gobuild.Repeat(0, spinInterval, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.draw()
	}, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.erase()
		s.running = slices.DeleteFunc(s.running, func(other *step) bool { return other == st })
		s.draw()
	})
}

// line returns the line of a step that runs.
func (st *step) line() string {
	text, elapsed := st.current(), time.Since(st.begun)
	if elapsed >= time.Second {
		text = fmt.Sprintf("%s (%s)", text, age(elapsed))
	}
	return line(st.steps.colors, st.steps.width()-3, // room for ^C
		span{spinner[int(elapsed/spinInterval)%len(spinner)] + " ", cyan}, span{padRight(st.label, labelWidth), plainText}, span{text, dim})
}

// say replaces the note that a terminal shows during the step.
func (st *step) say(note string) { st.sayOf(func() string { return note }) }

// sayOf has the note asked for whenever it is shown.
func (st *step) sayOf(note func() string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.note = note
}

func (st *step) current() string {
	st.mu.Lock()
	note := st.note
	st.mu.Unlock()
	return note()
}

// Show shows the progress of a build as the note of the step.
func (st *step) Show(what string, detail func() string) (stop func()) {
	st.sayOf(func() string {
		if detail == nil {
			return what
		}
		return cmp.Or(detail(), what)
	})
	return func() {}
}

// Write writes lines that stay.
func (st *step) Write(data []byte) (int, error) { return st.steps.Write(data) }

// done ends the step with its result.
func (st *step) done(result string) {
	st.finish("✓", green, fmt.Sprintf("%s (%.1fs)", result, time.Since(st.begun).Seconds()))
}

// skip ends the step with the reason why there was nothing to do.
func (st *step) skip(reason string) { st.finish("-", dim, reason) }

// quit ends the step without a line.
func (st *step) quit() { st.stop() }

func (st *step) finish(mark string, c color, text string) {
	st.stop()
	s := st.steps
	spans := []span{{mark + " ", c}, {padRight(st.label, labelWidth), plainText}, {text, plainText}}
	if s.terminal {
		fmt.Fprintln(s, line(s.colors, s.width()-1, spans...))
		return
	}
	fmt.Fprintln(s, mark+" "+padRight(st.label, labelWidth)+text)
}
