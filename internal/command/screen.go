// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// A screen is a terminal on which pictures replace each other.
type screen struct{ out *os.File }

// screenOf returns the terminal behind w, if it is one that can draw.
func screenOf(w io.Writer) (screen, bool) {
	out, ok := fileOf(w)
	return screen{out}, ok && term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
}

// open hides the text and the cursor of the terminal, until the function that it returns is called.
func (s screen) open() (restore func()) {
	fmt.Fprint(s.out, "\x1b[?1049h\x1b[?25l")
	return func() { fmt.Fprint(s.out, "\x1b[?25h\x1b[?1049l") }
}

// draw replaces the picture by the lines that fit the width and the height of the terminal.
func (s screen) draw(lines func(width, height int) []string) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	fmt.Fprint(s.out, "\x1b[H"+strings.Join(lines(width, height), "\x1b[K\r\n")+"\x1b[K\x1b[J")
}

// page returns the first lines of a text, broken at the width, with last below them.
func page(text, last string, width, height int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		rest := []rune(printable.Line(strings.TrimSuffix(line, "\n")))
		for ; len(rest) > width; rest = rest[width:] {
			lines = append(lines, string(rest[:width]))
		}
		lines = append(lines, string(rest))
	}
	if more := len(lines) - (height - 1); more > 0 {
		lines, last = lines[:height-1], fmt.Sprintf("%d more lines · %s", more, last)
	}
	return append(lines, cutLine(last, width))
}

// cutLine returns a line without what acts on a terminal, and cuts what does not fit.
func cutLine(text string, width int) string {
	text = printable.Line(text)
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}
