// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// A progress says how far the soak is: in a line that is drawn again each second in a terminal, in
// a line every half minute elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	prefix   string
}

func newProgress(out io.Writer, prefix string) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, terminal: ok && term.IsTerminal(int(file.Fd())), prefix: prefix}
}

// line writes a line that stays.
func (p *progress) line(format string, args ...any) {
	fmt.Fprintf(p.out, "%s: %s\n", p.prefix, fmt.Sprintf(format, args...))
}

// show writes what text returns, again and again until stop is called, and once more then.
func (p *progress) show(text func() string) (stop func()) {
	interval := 30 * time.Second
	if p.terminal {
		interval = time.Second
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.draw(text())
			case <-done:
				if p.terminal {
					fmt.Fprint(p.out, "\r\x1b[K")
				}
				p.line("%s", text())
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}

func (p *progress) draw(text string) {
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s: %s", p.prefix, text)
		return
	}
	p.line("%s", text)
}
