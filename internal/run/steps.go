// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"sync"
	"time"
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
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// remark writes a line between the steps.
func (s *steps) remark(label, text string) {
	fmt.Fprintf(s.out, "%s %s%s\n", paint(s.colors, dim, "→"), padRight(label, labelWidth), text)
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
	}
	return st
}

// spin redraws the line of the step until the returned function is called, which erases it.
func (st *step) spin() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	draw := func(turn int) {
		text := st.current()
		if elapsed := time.Since(st.begun); elapsed >= time.Second {
			text = fmt.Sprintf("%s (%s)", text, age(elapsed))
		}
		fmt.Fprintf(st.steps.out, "\r%s\x1b[K", line(st.steps.colors, st.steps.width()-3, // room for ^C
			span{spinner[turn%len(spinner)] + " ", cyan}, span{padRight(st.label, labelWidth), plainText}, span{text, dim}))
	}
	go func() {
		defer close(ended)
		ticker := time.NewTicker(spinInterval)
		defer ticker.Stop()
		for turn := 0; ; turn++ {
			draw(turn)
			select {
			case <-ticker.C:
			case <-done:
				fmt.Fprint(st.steps.out, "\r\x1b[K")
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
