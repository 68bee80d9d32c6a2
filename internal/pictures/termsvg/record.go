// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package termsvg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
)

// grace is how long a command may take to end after it was interrupted.
const grace = 30 * time.Second

// Record runs a command in a terminal of its own and returns what it shows. After limit it presses
// Ctrl-C; what the command shows from then on, until it ends, is part of the recording. That the
// command fails is not an error; that it cannot be started is.
func Record(ctx context.Context, size Size, command []string, limit time.Duration) (Cast, error) {
	if err := size.check(); err != nil {
		return Cast{}, fmt.Errorf("recording: %w", err)
	}
	if len(command) == 0 {
		return Cast{}, errors.New("recording: no command is given")
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // the end is pressed by Ctrl-C, and killed below
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=", "NO_COLOR=",
		fmt.Sprintf("COLUMNS=%d", size.Columns), fmt.Sprintf("LINES=%d", size.Rows))
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(size.Columns), Rows: uint16(size.Rows)}) //nolint:gosec // checked above
	if err != nil {
		return Cast{}, fmt.Errorf("recording %s: %w", command[0], err)
	}
	defer terminal.Close()

	ended := make(chan struct{})
	go press(ctx, terminal, cmd.Process, limit, ended)
	events, err := read(terminal)
	close(ended)
	_ = cmd.Wait() // how it ended is on the screen
	if err != nil {
		return Cast{}, fmt.Errorf("recording %s: %w", command[0], err)
	}
	return Cast{Size: size, Events: events}, nil
}

// press ends the command: by Ctrl-C after limit or when ctx is done, and by force when that does
// not help.
func press(ctx context.Context, terminal io.Writer, process *os.Process, limit time.Duration, ended <-chan struct{}) {
	enough := time.NewTimer(limit)
	defer enough.Stop()
	select {
	case <-ended:
		return
	case <-enough.C:
	case <-ctx.Done():
	}
	_, _ = terminal.Write([]byte{3}) // Ctrl-C; a terminal that is gone has ended the command
	force := time.NewTimer(grace)
	defer force.Stop()
	select {
	case <-ended:
	case <-force.C:
		_ = syscall.Kill(-process.Pid, syscall.SIGKILL) // the command leads a session, and so a group, of its own
	}
}

// read collects what comes out of the terminal until the other side is closed.
func read(terminal io.Reader) ([]Event, error) {
	var events []Event
	var rest []byte
	began := time.Now()
	buffer := make([]byte, 32<<10)
	for {
		n, err := terminal.Read(buffer)
		chunk := append(rest, buffer[:n]...)
		whole := wholeRunes(chunk)
		if whole > 0 {
			events = append(events, Event{At: time.Since(began), Text: string(chunk[:whole])})
		}
		rest = append([]byte(nil), chunk[whole:]...)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, syscall.EIO): // Linux returns EIO when no process has the terminal open any more
			return events, nil
		case err != nil:
			return events, err
		}
	}
}

// wholeRunes returns the length of b without a character at its end that has not come completely.
func wholeRunes(b []byte) int {
	for back := 1; back <= min(len(b), utf8.UTFMax-1); back++ {
		if tail := b[len(b)-back:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return len(b)
			}
			return len(b) - back
		}
	}
	return len(b)
}
