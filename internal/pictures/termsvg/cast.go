// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package termsvg

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// A Cast is a recorded terminal.
type Cast struct {
	Size Size
	// Events are in the order of time.
	Events []Event
}

// Size is the size of a terminal in characters.
type Size struct{ Columns, Rows int }

// An Event is something that was written to the terminal.
type Event struct {
	// At is the time since the beginning.
	At   time.Duration
	Text string
}

// Bounds within which a recording can be drawn. Larger ones are mistakes.
const (
	maxColumns, maxRows = 500, 200
	maxLine             = 16 << 20
)

type castHeader struct{ Version, Width, Height int }

// ReadCast reads a recording in the format of asciinema, version 2. Events other than output are
// left out.
func ReadCast(r io.Reader) (Cast, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	if !lines.Scan() {
		return Cast{}, errors.Join(errors.New("reading a recording: it is empty"), lines.Err())
	}
	var header castHeader
	if err := json.Unmarshal(lines.Bytes(), &header); err != nil {
		return Cast{}, fmt.Errorf("reading a recording: the header: %w", err)
	}
	c := Cast{Size: Size{header.Width, header.Height}}
	if header.Version != 2 {
		return Cast{}, fmt.Errorf("reading a recording: it has version %d, want 2", header.Version)
	}
	if err := c.Size.check(); err != nil {
		return Cast{}, fmt.Errorf("reading a recording: %w", err)
	}
	for number := 2; lines.Scan(); number++ {
		event, isOutput, err := readEvent(lines.Bytes())
		if err != nil {
			return Cast{}, fmt.Errorf("reading a recording: line %d: %w", number, err)
		}
		if isOutput {
			c.Events = append(c.Events, event)
		}
	}
	if err := lines.Err(); err != nil {
		return Cast{}, fmt.Errorf("reading a recording: %w", err)
	}
	return c, nil
}

func (s Size) check() error {
	if s.Columns < 1 || s.Columns > maxColumns || s.Rows < 1 || s.Rows > maxRows {
		return fmt.Errorf("the terminal has %d columns and %d rows, want 1 to %d and 1 to %d", s.Columns, s.Rows, maxColumns, maxRows)
	}
	return nil
}

func readEvent(line []byte) (event Event, isOutput bool, err error) {
	var seconds float64
	var kind string
	fields := []any{&seconds, &kind, &event.Text}
	if err := json.Unmarshal(line, &fields); err != nil {
		return Event{}, false, err
	}
	if len(fields) != 3 || seconds < 0 || seconds > math.MaxInt32 {
		return Event{}, false, fmt.Errorf("%.60s is not an event: want [seconds, kind, text]", line)
	}
	event.At = time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
	return event, kind == "o", nil
}
