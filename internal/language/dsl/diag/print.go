// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"go/token"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// tabWidth is the number of columns that a tab of the source takes when the source is shown.
const tabWidth = 4

// A Printer writes diagnostics for people: the place, the message, the source line and the wrong
// piece underlined.
type Printer struct {
	// Sources holds the text of every document by the file name that positions give. A line of a
	// file that is missing here is not shown.
	Sources map[string][]byte
	// Style is whether to use colors.
	Style Style
}

// Style is how the output of a [Printer] looks.
type Style int

const (
	// Plain is text without any escape sequence.
	Plain Style = iota
	// Color marks places, severities and hints by ANSI escape sequences.
	Color
)

// maxPrinted is the number of diagnostics after which a Printer stops and counts the rest, which
// are often consequences of the first ones.
const maxPrinted = 100

// Print writes the first 100 diagnostics of the list, and the number of the others. Of a line that
// is too long it shows the piece around the position.
func (p Printer) Print(w io.Writer, list List) error {
	out := bufio.NewWriter(w)
	lines := lineCache{sources: p.Sources, split: map[string][][]byte{}}
	shown := list[:min(len(list), maxPrinted)]
	for _, d := range shown {
		p.printOne(out, &lines, d)
	}
	if rest := list[len(shown):]; len(rest) > 0 {
		fmt.Fprintln(out, notShown(rest))
	}
	return out.Flush()
}

// notShown returns a line with the number of diagnostics that are left out.
func notShown(list List) string {
	var parts []string
	for _, what := range []Severity{Error, Warning, Note} {
		switch n := list.Count(what); n {
		case 0:
		case 1:
			parts = append(parts, "1 more "+what.String())
		default:
			parts = append(parts, fmt.Sprintf("%d more %vs", n, what))
		}
	}
	verb := "are"
	if len(list) == 1 {
		verb = "is"
	}
	return fmt.Sprintf("and %s, which %s not shown", strings.Join(parts, " and "), verb)
}

func (p Printer) printOne(w *bufio.Writer, lines *lineCache, d Diagnostic) {
	ink := red
	switch d.Severity() {
	case Warning:
		ink = yellow
	case Note:
		ink = blue
	}
	fmt.Fprintf(w, "%s: %s%s [%s]\n", p.paint(bold, position(d.Start)), p.paint(ink, label(d.Severity())), brief(d.Message), d.Code)
	p.snippet(w, lines, d.Start, d.End, ink, brief(d.Hint))
	for _, r := range d.Related {
		fmt.Fprintf(w, "   %s: %s\n", p.paint(bold, position(r.Start)), brief(r.Message))
		p.snippet(w, lines, r.Start, r.End, blue, "")
	}
}

// snippet shows the line of start, and marks what is between start and end on it. Further lines are
// not shown.
func (p Printer) snippet(w *bufio.Writer, lines *lineCache, start, end token.Position, ink, hint string) {
	line, ok := lines.line(start)
	if !ok {
		if hint != "" {
			fmt.Fprintf(w, "        %s\n", hint)
		}
		return
	}
	from := min(max(start.Column-1, 0), len(line))
	to := len(line)
	if end.Line == start.Line {
		to = min(max(end.Column-1, from), len(line))
	}
	line, from, to, before, after := window(line, from, to)
	gap := columns(line[:from], 0)
	marks := max(columns(line[from:to], gap), 1)
	shown := expand(line)
	if before {
		gap, shown = gap+1, cut+shown
	}
	if after {
		shown += cut
	}
	if hint != "" {
		hint = " " + hint
	}
	fmt.Fprintf(w, "%5d | %s\n", start.Line, shown)
	fmt.Fprintf(w, "      | %s%s%s\n", strings.Repeat(" ", gap), p.paint(ink, strings.Repeat("^", marks)), hint)
}

// cut stands for what is left out of a line or a message.
const cut = "…"

// The numbers of bytes that are shown of a line that is longer: before the position, and after it.
const maxBefore, maxBehind = 60, 160

// window cuts a line that is too long to the piece around a position, between characters. It
// returns the piece with the position of from and to in it, and reports on which sides something
// was cut off.
func window(line []byte, from, to int) (piece []byte, newFrom, newTo int, before, after bool) {
	if len(line) <= maxBefore+maxBehind {
		return line, from, to, false, false
	}
	first, last := max(from-maxBefore, 0), min(from+maxBehind, len(line))
	for first > 0 && first < from && !utf8.RuneStart(line[first]) {
		first++
	}
	for last > from && last < len(line) && !utf8.RuneStart(line[last]) {
		last--
	}
	return line[first:last], from - first, min(to, last) - first, first > 0, last < len(line)
}

// The numbers of bytes that are shown of a message that is longer: of its beginning, and of its
// end.
const maxHead, maxTail = 400, 100

// brief leaves out the middle of a text that repeats a very long piece of a document.
func brief(text string) string {
	if len(text) <= maxHead+maxTail {
		return text
	}
	return strings.ToValidUTF8(text[:maxHead], "") + cut + strings.ToValidUTF8(text[len(text)-maxTail:], "")
}

// The sequences that [Printer] uses.
const (
	bold   = "1"
	red    = "31"
	yellow = "33"
	blue   = "34"
)

func (p Printer) paint(ink, text string) string {
	if p.Style == Plain || text == "" {
		return text
	}
	return "\x1b[" + ink + "m" + text + "\x1b[0m"
}

// lineCache splits each source once, so that printing stays linear in the number of diagnostics.
type lineCache struct {
	sources map[string][]byte
	split   map[string][][]byte
}

func (c *lineCache) line(pos token.Position) ([]byte, bool) {
	src, ok := c.sources[pos.Filename]
	if !ok {
		return nil, false
	}
	lines, ok := c.split[pos.Filename]
	if !ok {
		lines = bytes.Split(src, []byte("\n"))
		c.split[pos.Filename] = lines
	}
	if pos.Line < 1 || pos.Line > len(lines) {
		return nil, false
	}
	return bytes.TrimSuffix(lines[pos.Line-1], []byte("\r")), true
}

// expand prepares a line of source for a terminal: tabs become spaces, and characters that a
// terminal would act upon become visible.
func expand(line []byte) string {
	var b strings.Builder
	col := 0
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		n := runeColumns(r, size, col)
		switch {
		case r == '\t':
			b.WriteString(strings.Repeat(" ", n))
		case r == utf8.RuneError && size == 1, unprintable(r):
			b.WriteRune('\uFFFD')
		default:
			b.Write(line[:size])
		}
		col += n
		line = line[size:]
	}
	return strings.TrimRight(b.String(), " ")
}

// columns returns how many columns of a terminal the text takes when it begins in column col.
func columns(text []byte, col int) int {
	start := col
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		col += runeColumns(r, size, col)
		text = text[size:]
	}
	return col - start
}

func runeColumns(r rune, size, col int) int {
	switch {
	case r == '\t':
		return tabWidth - col%tabWidth
	case r == utf8.RuneError && size == 1, unprintable(r):
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// unprintable reports whether a terminal may do anything but show a glyph for the rune. That holds
// for control characters, marks that change the direction of text, and joiners.
func unprintable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// PrintJSON writes the list as an array of objects, `[]` when it is empty, for editors and other
// programs.
func PrintJSON(w io.Writer, list List) error {
	if list == nil {
		list = List{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}

// Visible returns a line of text without the characters that a terminal would act upon or cannot
// show: it replaces them.
func Visible(line string) string { return expand([]byte(line)) }
