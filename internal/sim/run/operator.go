// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// keptLines is how many lines of the operator's log are kept for the report of its end: the stacks
// of a panic are long. tailLines is how many of them are shown.
const (
	keptLines = 2000
	tailLines = 20
)

// operator is the running operator, under its supervisor.
type operator struct {
	cmd      *exec.Cmd
	lifeline io.WriteCloser
	log      *logTail
	ended    chan struct{} // closed when it has ended
	stopping sync.Once
}

// startOperator runs argv under a supervisor, whose command line begins with command. log
// receives its output.
func startOperator(command, argv []string, environment []string, log *logTail) (*operator, error) {
	return startIn(supervisor.OwnProcessGroup(), command, argv, append(os.Environ(), environment...), log)
}

func startIn(group *syscall.SysProcAttr, command, argv []string, environment []string, log *logTail) (*operator, error) {
	commandLine := append(append(append([]string{}, command...), "--"), argv...)
	cmd := exec.Command(commandLine[0], commandLine[1:]...)
	cmd.Env = environment
	cmd.SysProcAttr = group
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = time.Second // in case a process that the operator started still holds the pipe
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	o := &operator{cmd: cmd, lifeline: lifeline, log: log, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		_ = cmd.Wait() // how it ended is in ProcessState
		log.flush()
	}()
	return o, nil
}

// howItEnded describes how the operator ended. Call it only after ended is closed.
func (o *operator) howItEnded() string {
	code := o.cmd.ProcessState.ExitCode()
	if code <= supervisor.SignalCode {
		return o.cmd.ProcessState.String()
	}
	text := "signal: " + syscall.Signal(code-supervisor.SignalCode).String()
	if syscall.Signal(code-supervisor.SignalCode) == syscall.SIGKILL {
		text += ", which the kernel sends when memory runs out"
	}
	return text
}

// stop ends the operator and the processes that it started, and waits until they have ended.
func (o *operator) stop() {
	o.stopping.Do(func() {
		_, _ = o.lifeline.Write([]byte{supervisor.TerminateRequest}) // an error means that the operator has already ended
		<-o.ended
		_ = o.lifeline.Close()
	})
}

// kill ends the operator and the processes that it started at once, and waits until they have
// ended.
func (o *operator) kill() {
	o.stopping.Do(func() {
		_ = o.lifeline.Close() // its supervisor kills it
		<-o.ended
	})
}

// logTail splits a log into lines, passes each line on, and keeps the last ones.
type logTail struct {
	mu         sync.Mutex // guards the fields below
	unfinished []byte
	lines      []string
	pass       func(string)
}

func (t *logTail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unfinished = append(t.unfinished, data...)
	for {
		text, remainder, found := bytes.Cut(t.unfinished, []byte("\n"))
		if !found {
			return len(data), nil
		}
		t.unfinished = remainder
		t.add(string(text))
	}
}

func (t *logTail) add(text string) {
	t.lines = append(t.lines, text)
	if len(t.lines) >= 2*keptLines {
		t.lines = append(t.lines[:0], t.lines[len(t.lines)-keptLines:]...)
	}
	if t.pass != nil {
		t.pass(text)
	}
}

// flush treats an unfinished line as finished.
func (t *logTail) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.unfinished) > 0 {
		t.add(string(t.unfinished))
		t.unfinished = nil
	}
}

// last returns the last lines.
func (t *logTail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.lines[max(0, len(t.lines)-keptLines):]...)
}
