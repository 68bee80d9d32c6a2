// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package termsvg

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hinshun/vt10x"
)

// A frame is what the terminal shows from a time on.
type frame struct {
	at   time.Duration
	rows []row
}

// A row is the pieces of one line of the screen, from left to right, without what is blank.
type row []run

// A run is text of one style.
type run struct {
	column int
	text   string
	style  style
}

type style struct {
	fg, bg                  vt10x.Color
	bold, italic, underline bool
}

// The bits of a cell's mode as the terminal emulator sets them; it does not export them.
const (
	modeUnderline = 1 << 1
	modeBold      = 1 << 2
	modeItalic    = 1 << 4
)

// frames plays the recording and returns what the screen shows at every multiple of interval, where
// it differs from the frame before. Pauses longer than idle are shortened to it.
func (c Cast) frames(interval, idle time.Duration) (frames []frame, length time.Duration, err error) {
	defer func() {
		if v := recover(); v != nil { // the emulator is not ours, and the recording may come from anywhere
			err = fmt.Errorf("playing the recording: %v", v)
		}
	}()
	p := &player{terminal: vt10x.New(vt10x.WithSize(c.Size.Columns, c.Size.Rows))}
	var now, before time.Duration
	for i, e := range c.Events {
		now += min(max(e.At-before, 0), idle)
		before = e.At
		p.write(e.Text)
		if i+1 < len(c.Events) && (now+min(max(c.Events[i+1].At-before, 0), idle))/interval == now/interval {
			continue // the next event falls into the same frame
		}
		rows := p.rows()
		if n := len(frames); n > 0 && sameRows(frames[n-1].rows, rows) {
			continue
		}
		frames = append(frames, frame{at: now / interval * interval, rows: rows})
	}
	if len(frames) == 0 {
		frames = []frame{{rows: p.rows()}}
	}
	return frames, now, nil
}

// A player feeds a terminal emulator.
type player struct {
	terminal vt10x.Terminal
	rest     string // an escape sequence that has not come completely
}

var (
	unfinished = regexp.MustCompile("\x1b(\\[[0-9;]*)?$")
	attributes = regexp.MustCompile("\x1b\\[([0-9;]*)m")
)

func (p *player) write(text string) {
	text = p.rest + text
	p.rest = unfinished.FindString(text)
	text = attributes.ReplaceAllStringFunc(strings.TrimSuffix(text, p.rest), replaceFaint)
	_, _ = p.terminal.Write([]byte(text)) // the emulator reports nothing but incomplete characters
}

// replaceFaint turns faint letters, which the emulator does not know, into grey ones.
func replaceFaint(sequence string) string {
	parameters := strings.Split(sequence[2:len(sequence)-1], ";")
	for i := 0; i < len(parameters); i++ {
		switch parameters[i] {
		case "38", "48": // a color follows, in which 2 means something else
			i = len(parameters)
		case "2":
			parameters[i] = "90"
		case "22":
			parameters[i] = "22;39"
		}
	}
	return "\x1b[" + strings.Join(parameters, ";") + "m"
}

func (p *player) rows() []row {
	columns, count := p.terminal.Size()
	rows := make([]row, count)
	for y := range rows {
		rows[y] = p.row(y, columns)
	}
	return rows
}

func (p *player) row(y, columns int) row {
	var runs row
	var text strings.Builder
	begin, current := 0, style{}
	flush := func() {
		if t := text.String(); strings.TrimSpace(t) != "" || (current.bg != vt10x.DefaultBG && t != "") {
			if current.bg == vt10x.DefaultBG && !current.underline {
				indent := len(t) - len(strings.TrimLeft(t, " "))
				begin, t = begin+indent, strings.Trim(t, " ")
			}
			runs = append(runs, run{column: begin, text: t, style: current})
		}
		text.Reset()
	}
	for x := range columns {
		cell := p.terminal.Cell(x, y)
		s := style{
			fg: cell.FG, bg: cell.BG,
			bold: cell.Mode&modeBold != 0, italic: cell.Mode&modeItalic != 0, underline: cell.Mode&modeUnderline != 0,
		}
		if x == 0 || s != current {
			flush()
			begin, current = x, s
		}
		text.WriteString(cmp.Or(printable(string(cell.Char)), " "))
	}
	flush()
	return runs
}

func sameRows(a, b []row) bool {
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return false
		}
		for j := range a[i] {
			if a[i][j] != b[i][j] {
				return false
			}
		}
	}
	return true
}
