// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// color is the parameter of an escape sequence that sets the style of text. The zero value sets
// none.
type color string

const (
	plainText color = ""
	bold      color = "1"
	dim       color = "2"
	red       color = "31"
	green     color = "32"
	yellow    color = "33"
	cyan      color = "36"
)

func (l Level) color() color {
	switch l {
	case LevelGood:
		return green
	case LevelBusy:
		return yellow
	case LevelBad:
		return red
	default:
		return plainText
	}
}

// paint wraps text in the escape sequences of c. Without colors it returns text.
func paint(colors bool, c color, text string) string {
	if !colors || c == plainText || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// span is a piece of a line in one color.
type span struct {
	text  string
	color color
}

// line joins spans and truncates them to a width in terminal cells.
func line(colors bool, width int, spans ...span) string {
	var b strings.Builder
	left := width
	for i, s := range spans {
		text := s.text
		rest := 0
		for _, later := range spans[i+1:] {
			rest += runewidth.StringWidth(later.text)
		}
		if w := runewidth.StringWidth(text); w > left || (w == left && rest > 0) {
			b.WriteString(paint(colors, s.color, runewidth.Truncate(text+" ", left, "…")))
			return b.String()
		} else {
			left -= w
		}
		b.WriteString(paint(colors, s.color, text))
	}
	return strings.TrimRight(b.String(), " ")
}

// padRight appends spaces to text up to width cells.
func padRight(text string, width int) string { return runewidth.FillRight(text, width) }

// shorten omits the middle of text that is wider than width: generated names differ at their end.
func shorten(text string, width int) string {
	total := runewidth.StringWidth(text)
	if total <= width {
		return text
	}
	if width < 5 {
		return runewidth.Truncate(text, width, "…")
	}
	tail := (width - 1) / 2
	head := runewidth.Truncate(text, width-1-tail, "")
	end := runewidth.TruncateLeft(text, total-tail, "")
	return head + "…" + end
}
