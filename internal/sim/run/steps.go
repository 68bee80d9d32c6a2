// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
)

// steps reports the progress of the set-up: a line for each finished step and, on a terminal, a
// line for the present one, which is redrawn in place.
type steps struct {
	out      io.Writer
	colors   bool
	terminal bool
	width    func() int
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
	fmt.Fprintf(s.out, "%s %s%s\n", paint(s.colors, dim, "→"), padRight(label, labelWidth), strings.Join(lines, "\n"+strings.Repeat(" ", labelWidth+2)))
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
	note string
}

// begin starts a step. The label names what the step provides.
func (s *steps) begin(label, note string) *step {
	st := &step{steps: s, label: label, note: note, begun: time.Now(), stop: func() {}}
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
	return repeatedly(tellInterval, func(int) {
		fmt.Fprintf(st.steps.out, "… %s%s (%s)\n", padRight(st.label, labelWidth), st.current(), age(time.Since(st.begun)))
	}, func() {})
}

// spin redraws the line of the step until the returned function is called, which erases it.
func (st *step) spin() (stop func()) {
	draw := func(turn int) {
		text := st.current()
		if elapsed := time.Since(st.begun); elapsed >= time.Second {
			text = fmt.Sprintf("%s (%s)", text, age(elapsed))
		}
		fmt.Fprintf(st.steps.out, "\r%s\x1b[K", line(st.steps.colors, st.steps.width()-3, // room for ^C
			span{spinner[turn%len(spinner)] + " ", cyan}, span{padRight(st.label, labelWidth), plainText}, span{text, dim}))
	}
	draw(0)
	return repeatedly(spinInterval, draw, func() { fmt.Fprint(st.steps.out, "\r\x1b[K") })
}

// repeatedly calls turn, which is numbered from one, at each interval until the returned function is
// called, and then last.
func repeatedly(interval time.Duration, turn func(int), last func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for n := 1; ; n++ {
			select {
			case <-ticker.C:
				turn(n)
			case <-done:
				last()
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}

// say replaces the note that a terminal shows during the step.
func (st *step) say(note string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.note = note
}

func (st *step) current() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.note
}

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
		fmt.Fprintln(s.out, line(s.colors, s.width()-1, spans...))
		return
	}
	for _, span := range spans {
		fmt.Fprint(s.out, span.text)
	}
	fmt.Fprintln(s.out)
}
