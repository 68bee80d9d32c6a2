// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package printable is where text of others becomes output: names, messages and values of a cluster,
// of a file or of a program. A character that acts instead of being visible is escaped, as Go does in
// a string: an object must not move the cursor, begin a line, set the title of a window, or reverse
// the direction of writing.
//
// Text that is put between others is passed through [Line] or [Text] where it is put there. What a
// command writes goes through a [Writer] in addition, so that no command depends on each of its
// fields.
package printable

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Acts reports whether a character acts instead of being visible: control characters, those that
// change the direction of writing, and those of no width.
func Acts(r rune) bool { return !unicode.IsGraphic(r) || r == '\u2028' || r == '\u2029' }

// Is reports whether a text of one or more lines has no character that acts.
func Is(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return Acts(r) && r != '\n' })
}

// Line returns a text as one line: its lines are joined, such as those of an error, and what acts is
// escaped.
func Line(text string) string {
	if Is(text) && !strings.Contains(text, "\n") {
		return text
	}
	return Text(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " "))
}

// Text returns a text with what acts escaped. The ends of lines stay.
func Text(text string) string {
	if Is(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n' || !Acts(r):
			b.WriteString(text[:n])
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.String()
}

// Markdown returns a line for Markdown, outside of code: it is no link, no picture, no code and no
// HTML.
func Markdown(line string) string { return markup.Replace(Line(line)) }

// Code returns a line for a block of code in Markdown: it does not end the block.
func Code(line string) string {
	return fence.ReplaceAllStringFunc(Line(line), func(run string) string { return strings.ReplaceAll(run, "``", "`´") })
}

var fence = regexp.MustCompile("`{3,}")

var markup = strings.NewReplacer("<", `\<`, "[", `\[`, "`", "\\`", `\`, `\\`)

// Cut returns the beginning of a text that is too long, and says so. A text that was cut is not cut
// again.
func Cut(text string, most int) string {
	const room = 40
	if len(text) <= most+room || utf8.RuneCountInString(text) <= most+room {
		return text
	}
	runes := []rune(text)
	return fmt.Sprintf("%s… (%d%s", string(runes[:most]), len(runes)-most, MoreCharacters)
}

// MoreCharacters ends a text that was cut.
const MoreCharacters = " more characters)"

// colors matches the escape sequences with which commands color their output, and clear a line that
// they draw again.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m|\r?\x1b\\[K")

// A Writer writes to a terminal, a pipe or a file without what acts on it. It may be used
// concurrently if what it writes to may be.
type Writer struct {
	to io.Writer

	mu    sync.Mutex // guards what follows
	draws bool
	rest  []byte // the beginning of a character
}

// NewWriter returns a writer that writes to another one.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Draws returns the file that is written to, and whether there is one, for a command that asks
// whether it is a terminal: from now on, colors and lines that are drawn again pass. The command
// passes what it puts between them through [Line].
func (w *Writer) Draws() (*os.File, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.to.(*os.File)
	w.draws = ok
	return f, ok
}

// Unchanged returns what is written to.
func (w *Writer) Unchanged() io.Writer { return w.to }

// Write writes text. The beginning of a character waits for the rest of it.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Concat(w.rest, p)
	end := len(all)
	for i := 1; i < utf8.UTFMax && i <= len(all); i++ {
		if c := all[len(all)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(all[len(all)-i:]) {
				end = len(all) - i
			}
			break
		}
	}
	w.rest = append([]byte(nil), all[end:]...)
	if _, err := io.WriteString(w.to, w.printed(string(all[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *Writer) printed(text string) string {
	if !w.draws {
		return JSON(text)
	}
	var b strings.Builder
	last := 0
	for _, at := range colors.FindAllStringIndex(text, -1) {
		b.WriteString(JSON(text[last:at[0]]) + text[at[0]:at[1]])
		last = at[1]
	}
	return b.String() + JSON(text[last:])
}

// JSON returns a text with what acts escaped, as is also right in the strings of JSON. The ends of
// lines stay, and tabs, which are between columns.
func JSON(text string) string {
	if Is(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\u%04x`, utf8.RuneError)
		case r == '\n' || r == '\t' || !Acts(r):
			b.WriteString(text[:n])
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.String()
}

// YAML returns a document of YAML, with the ends of its lines. YAML has no way to write some
// characters in a block, and others act on the terminal of who reads it: a document that has any is
// written as JSON, which is YAML, with each of them escaped.
func YAML(document any) (string, error) {
	text, err := yaml.Marshal(document)
	if err == nil && Is(string(text)) {
		return string(text), nil
	}
	asJSON, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return "", err
	}
	return Text(string(asJSON)) + "\n", nil
}
