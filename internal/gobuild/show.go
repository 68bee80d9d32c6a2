// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A Display shows in its own way what [Show] would write to it. What is written to it are lines that
// stay.
type Display interface {
	io.Writer

	// Show shows what is being done, and of it the detail, if that is not nil or empty, until the
	// returned function is called. That may be called more than once.
	Show(what string, detail func() string) (stop func())
}

const (
	// WhenSlow is how long what is mostly done at once may take before it is shown.
	WhenSlow = 5 * time.Second

	redrawInterval = 200 * time.Millisecond // of the line in a terminal
	lineInterval   = 10 * time.Second       // between lines elsewhere
	lineWidth      = 79                     // in a terminal: a line that wraps could not be erased
)

// Show writes after a delay what is being done, with the detail, if that is not nil or empty, and
// how long it has taken: in a terminal one line that is redrawn, otherwise a line every ten seconds.
// The returned function ends that, and erases the line in a terminal. It may be called more than
// once. A [Display] shows at once.
func Show(out io.Writer, delay time.Duration, what string, detail func() string) (stop func()) {
	if display, ok := out.(Display); ok {
		return display.Show(what, detail)
	}
	return show(out, isTerminal(out), delay, what, detail)
}

func show(out io.Writer, terminal bool, delay time.Duration, what string, detail func() string) (stop func()) {
	begun := time.Now()
	text := func() string {
		line := what
		if detail != nil {
			if said := detail(); said != "" {
				line += ": " + said
			}
		}
		if passed := time.Since(begun); passed >= time.Second {
			line += fmt.Sprintf(" (%s)", passed.Round(time.Second))
		}
		return line
	}
	if !terminal {
		return Repeat(delay, lineInterval, func() { fmt.Fprintln(out, text()) }, func() {})
	}
	drawn := false
	draw := func() {
		fmt.Fprintf(out, "\r\x1b[K%.*s", lineWidth, text())
		drawn = true
	}
	return Repeat(delay, redrawInterval, draw, func() {
		if drawn {
			fmt.Fprint(out, "\r\x1b[K")
		}
	})
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Repeat calls turn after a delay, at once if that is zero, and then at each interval. The returned
// function, which may be called more than once, ends that: it waits for a running turn, and then
// calls last.
func Repeat(delay, interval time.Duration, turn, last func()) (stop func()) {
	if delay == 0 {
		turn()
		delay = interval
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(delay)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				timer.Reset(interval)
				turn()
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
