// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package run

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge/registry"
)

// The shell programs of these tests say "up" when they are ready. A process that remains holds
// their standard output open, so that its end shows that every process has gone.

const stubborn = `trap '' TERM; sleep 1000 & echo up; while :; do wait; done`

type supervised struct {
	cmd      *exec.Cmd
	lifeline io.WriteCloser
	output   *bufio.Reader
}

func supervise(t *testing.T, grace time.Duration, script string) *supervised {
	t.Helper()
	rings.Test(t, "starts processes")
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, "sh", "-c", script)
	cmd.Env = append(os.Environ(), superviseVariable+"="+grace.String())
	cmd.Stderr = os.Stderr
	lifeline, err := cmd.StdinPipe()
	must(t, err)
	output, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	s := &supervised{cmd: cmd, lifeline: lifeline, output: bufio.NewReader(output)}
	t.Cleanup(func() { _ = lifeline.Close() })
	if line, err := s.output.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the program says %q: %v", line, err)
	}
	return s
}

// gone waits until no process remains, and returns what they wrote until then and the supervisor's
// exit code.
func (s *supervised) gone(t *testing.T) (output string, code int) {
	t.Helper()
	tooLong := time.AfterFunc(20*time.Second, func() { panic("a process remains") })
	defer tooLong.Stop()
	written, err := io.ReadAll(s.output)
	must(t, err)
	_ = s.cmd.Wait() // the code says how it ended
	return string(written), s.cmd.ProcessState.ExitCode()
}

func TestSuperviseKillsWhenItsHolderIsGone(t *testing.T) {
	s := supervise(t, time.Hour, stubborn)
	_ = s.lifeline.Close()
	s.gone(t)
}

func TestSuperviseTerminatesOnRequest(t *testing.T) {
	s := supervise(t, time.Hour, `trap 'echo bye; exit 7' TERM; sleep 1000 & echo up; wait`)
	if _, err := s.lifeline.Write([]byte{supervisor.TerminateRequest}); err != nil {
		t.Fatal(err)
	}
	if output, code := s.gone(t); output != "bye\n" || code != 7 {
		t.Errorf("got %q and exit code %d, want bye and 7", output, code)
	}
}

func TestSuperviseKillsAfterTheGrace(t *testing.T) {
	s := supervise(t, 50*time.Millisecond, stubborn)
	if _, err := s.lifeline.Write([]byte{supervisor.TerminateRequest, supervisor.TerminateRequest}); err != nil {
		t.Fatal(err)
	}
	s.gone(t)
}

func TestSuperviseKillsAtOnceDuringTheGrace(t *testing.T) {
	s := supervise(t, time.Hour, stubborn)
	if _, err := s.lifeline.Write([]byte{supervisor.TerminateRequest}); err != nil {
		t.Fatal(err)
	}
	_ = s.lifeline.Close()
	s.gone(t)
}

func TestSupervisePassesTheExitCodeOnAndLeavesNothing(t *testing.T) {
	s := supervise(t, time.Hour, `sleep 1000 & echo up; exit 5`)
	if _, code := s.gone(t); code != 5 {
		t.Errorf("got exit code %d, want 5", code)
	}
}

func TestSuperviseSaysThatItCannotStart(t *testing.T) {
	_, err := supervisor.Supervise(strings.NewReader(""), []string{"/nonexistent/program"}, time.Second, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "starting the operator") {
		t.Errorf("got %v", err)
	}
}

func startTestOperator(t *testing.T, script string, pass func(string)) *operator {
	t.Helper()
	rings.Test(t, "starts processes")
	self, err := os.Executable()
	must(t, err)
	o, err := startOperator([]string{self, supervisor.Name}, []string{"sh", "-c", script}, nil, &logTail{pass: pass})
	must(t, err)
	t.Cleanup(o.stop)
	return o
}

func TestOperatorTellsItsLastLines(t *testing.T) {
	o := startTestOperator(t, `i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i; done; printf 'no end' >&2; exit 3`, nil)
	<-o.ended
	lines := o.log.last()
	if len(lines) != 31 || lines[30] != "no end" || lines[0] != "line 1" {
		t.Errorf("got %d lines: %q", len(lines), lines)
	}
	if got := o.howItEnded(); got != "exit status 3" {
		t.Errorf("it ended with %q", got)
	}
}

// A program that a signal has ended is not one that has ended with exit code 1.
func TestOperatorTellsItsSignal(t *testing.T) {
	o := startTestOperator(t, `kill -KILL $$`, nil)
	<-o.ended
	if got, want := o.howItEnded(), "signal: killed, which the kernel sends when memory runs out"; got != want {
		t.Errorf("it ended with %q, want %q", got, want)
	}
}

func TestLogTailIsBounded(t *testing.T) {
	tail := new(logTail)
	for i := range 3 * keptLines {
		fmt.Fprintf(tail, "line %d\n", i)
	}
	if lines := tail.last(); len(lines) != keptLines || lines[keptLines-1] != fmt.Sprint("line ", 3*keptLines-1) {
		t.Errorf("%d lines are kept", len(lines))
	}
}

func TestOperatorStopsWithAllThatItStarted(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	o := startTestOperator(t, "sleep 1000 >"+fifo+" & wait", nil)
	held, err := os.Open(fifo) // waits until a process writes to it
	must(t, err)
	defer held.Close()
	o.stop()
	o.stop() // a second time does no harm
	tooLong := time.AfterFunc(20*time.Second, func() { panic("a process remains") })
	defer tooLong.Stop()
	if _, err := io.ReadAll(held); err != nil { // ends when no process can write to it any more
		t.Error(err)
	}
}

// A program that runs in a Pod gets the cluster that it is given, not that of the Pod: not even an empty
// variable is left that says so, unless it is given one.
func TestProgramsDoNotLearnOfTheClusterOfAPod(t *testing.T) {
	rings.Test(t, "starts processes")
	self, err := os.Executable()
	must(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	argv := []string{self, probeArgument, "getenv:PATH", "getenv:KUBERNETES_SERVICE_HOST", "getenv:KUBERNETES_SERVICE_PORT"}
	environment := []string{"KUBERNETES_SERVICE_PORT=8443", registry.Variable + "=" + os.Getenv(registry.Variable)}
	var lines []string
	p, err := StartProcess([]string{self, supervisor.Name}, argv, environment, nil, func(line string) { lines = append(lines, line) })
	must(t, err)
	t.Cleanup(p.Stop)
	<-p.Ended()
	if want := []string{"getenv:PATH", "getenv:KUBERNETES_SERVICE_PORT"}; !slices.Equal(lines, want) {
		t.Errorf("it has %q, want %q", lines, want)
	}
}
