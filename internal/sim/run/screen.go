// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// escapes matches the sequences that set colors.
var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// screen redraws a picture in place at the end of a terminal's output. It moves the cursor up and
// overwrites the last picture, so that earlier output stays in the scrollback. It is not safe for
// concurrent use.
type screen struct {
	out    io.Writer
	size   func() (width, height int)
	drawn  []string // the lines of the last picture
	hidden bool     // the cursor
}

// draw replaces the last picture. above is empty or ends with a line break; it is written above the
// picture and stays there.
func (s *screen) draw(above string, lines []string) error {
	var b bytes.Buffer
	if !s.hidden {
		b.WriteString("\x1b[?25l")
		s.hidden = true
	}
	s.rewind(&b)
	if above != "" {
		b.WriteString("\x1b[J")
		b.WriteString(above)
	}
	for _, text := range lines {
		b.WriteString(text)
		b.WriteString("\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = lines
	_, err := s.out.Write(b.Bytes())
	return err
}

// rewind moves the cursor to the beginning of the last picture. A terminal that has become narrower
// has wrapped its lines.
func (s *screen) rewind(b *bytes.Buffer) {
	width, _ := s.size()
	rows := 0
	for _, text := range s.drawn {
		cells := runewidth.StringWidth(escapes.ReplaceAllString(text, ""))
		rows += 1 + max(cells-1, 0)/max(width, 1)
	}
	if rows > 0 {
		fmt.Fprintf(b, "\r\x1b[%dA", rows)
	}
}

// leave ends the drawing. The last picture stays, with the cursor below it.
func (s *screen) leave() {
	if s.hidden {
		_, _ = io.WriteString(s.out, "\x1b[?25h") // the command ends, with or without a cursor
		s.hidden = false
	}
}

// terminalOf returns the file of w if it is a terminal.
func terminalOf(w io.Writer) (*os.File, bool) {
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// sizeOf returns a function that asks a terminal for its present size.
func sizeOf(file *os.File) func() (width, height int) {
	return func() (int, int) {
		width, height, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
}
