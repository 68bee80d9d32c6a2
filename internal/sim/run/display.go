// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// display shows the objects to a person, or to a program that reads from a pipe.
type display interface {
	// notify shows a notice.
	notify(notice Notice, at time.Time) error
	// log shows a line that is not a notice: of the operator's log, with --logs, an error of a watch,
	// or the result of a step. source names where it comes from; it is empty for a step.
	log(source, text string)
	// refresh shows the present state, in a display that does not show notices.
	refresh(w *World, now time.Time) error
	// leave ends the display and makes room for further output.
	leave(w *World, now time.Time)
}

// plainDisplay writes notices as lines to standard output and logs to standard error.
type plainDisplay struct {
	plain Plain
	logs  io.Writer
}

func (d *plainDisplay) notify(notice Notice, at time.Time) error { return d.plain.Print(notice, at) }
func (d *plainDisplay) log(source, text string) {
	fmt.Fprintf(d.logs, "%s | %s\n", source, loggedLine(text))
}
func (d *plainDisplay) refresh(*World, time.Time) error { return nil }
func (d *plainDisplay) leave(*World, time.Time)         {}

// liveDisplay redraws the tree of objects on a terminal.
type liveDisplay struct {
	screen *screen
	colors bool
	title  string
	hint   string
	start  time.Time
	steps  *steps          // those that still run are above the picture
	above  strings.Builder // log lines to be written above the picture
}

func (d *liveDisplay) notify(Notice, time.Time) error { return nil }

func (d *liveDisplay) log(source, text string) {
	if source != "" {
		d.above.WriteString(paint(d.colors, dim, source+" │ "))
	}
	d.above.WriteString(loggedLine(text) + "\x1b[0m\r\n")
}

func (d *liveDisplay) refresh(w *World, now time.Time) error {
	return d.draw(w, now, fmt.Sprintf("%s · %s · Ctrl-C stops everything", d.title, age(now.Sub(d.start))), d.steps.lines())
}

// draw draws the picture below the lines of steps.
func (d *liveDisplay) draw(w *World, now time.Time, title string, steps []string) error {
	width, height := d.screen.size()
	view := View{Width: width - 1, Height: height - 1 - len(steps), Now: now, Colors: d.colors, Title: title, Hint: d.hint}
	above := d.above.String()
	d.above.Reset()
	return d.screen.draw(above, append(append(steps, ""), view.Lines(w)...))
}

func (d *liveDisplay) leave(w *World, now time.Time) {
	_ = d.draw(w, now, fmt.Sprintf("%s · %s", d.title, age(now.Sub(d.start))), nil) // the command ends, with or without the last picture
	d.screen.leave()
}
