// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package run_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// The tests of this file run the command itself, with an operator, in a real control plane. All
// processes of a test inherit a variable with a unique value, which finds those that remain.
const markVariable = "CTRLKIT_TEST_MARK"

// buildCommand builds the command and, if that was not done before, the control plane.
func buildCommand(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which takes minutes to build and seconds to start")
	}
	if _, err := controlplane.FindAssets(t.Context(), controlplane.AllParts, controlplane.BuildOptions{Progress: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	return buildProgram(t)
}

// buildProgram builds the command.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ctrlkit")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/ctrlkit").CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, output)
	}
	return program
}

// running is a "ctrlkit run" of the test's operator.
type running struct {
	cmd    *exec.Cmd
	lines  *bufio.Reader
	output bytes.Buffer // what was read from lines
	stderr bytes.Buffer
	mark   string
}

func start(t *testing.T, program string, args ...string) *running {
	t.Helper()
	return startWith(t, nil, program, "./testdata/greeter", args...)
}

// startWith starts a run of any operator. If stderr is not nil, it gets what the run says; else the
// run keeps it.
func startWith(t *testing.T, stderr io.Writer, program, operator string, args ...string) *running {
	t.Helper()
	r := &running{mark: fmt.Sprintf("%s=%s-%d", markVariable, t.Name(), time.Now().UnixNano())}
	r.cmd = exec.Command(program, append([]string{"run", operator}, args...)...)
	r.cmd.Env = append(os.Environ(), "KUBECONFIG=", r.mark)
	r.cmd.Stderr = &r.stderr
	if stderr != nil {
		r.cmd.Stderr = stderr
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewReader(stdout)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it has ended, unless the test failed
		if t.Failed() {
			t.Logf("standard output:\n%s\nstandard error:\n%s", r.output.String(), r.stderr.String())
		}
	})
	return r
}

// until reads lines until one matches.
func (r *running) until(t *testing.T, pattern string) {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	for {
		line, err := r.lines.ReadString('\n')
		r.output.WriteString(line)
		if err != nil {
			t.Fatalf("no line matches %s: %v", pattern, err)
		}
		if wanted.MatchString(strings.TrimSuffix(line, "\n")) {
			return
		}
	}
}

// end waits for the end of the run and returns its exit code.
func (r *running) end(t *testing.T) int {
	t.Helper()
	if _, err := io.Copy(&r.output, r.lines); err != nil {
		t.Fatal(err)
	}
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode()
}

// processes lists the processes that carry the mark of the run.
func (r *running) processes(t *testing.T) []string {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range environments {
		content, err := os.ReadFile(file)
		if err == nil && bytes.Contains(content, []byte(r.mark)) {
			commandLine, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")) // it may have just ended
			found = append(found, filepath.Base(filepath.Dir(file))+" "+string(bytes.ReplaceAll(commandLine, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// wantProcesses checks that what is going to be looked for later can be found.
func (r *running) wantProcesses(t *testing.T, names ...string) {
	t.Helper()
	found := strings.Join(r.processes(t), "\n")
	for _, name := range names {
		if !strings.Contains(found, name) {
			t.Errorf("%s does not run, or cannot be found among:\n%s", name, found)
		}
	}
}

// wantNoProcesses waits for the last process to end, but not for long.
func (r *running) wantNoProcesses(t *testing.T, within time.Duration) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	tooLong := time.After(within)
	for {
		remaining := r.processes(t)
		if len(remaining) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-tooLong:
			t.Fatalf("still running after %v:\n%s", within, strings.Join(remaining, "\n"))
		}
	}
}

// killedWithin is how long processes may take to end when the run was killed.
const killedWithin = 10 * time.Second

var everyProcess = []string{"ctrlkit run", "supervise-operator", "/greeter", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

func TestRunThroughAPipe(t *testing.T) {
	r := start(t, buildCommand(t), "--until", "job/*=Complete count == 2", "--until", "greeter/world:status.phase=Greeted", "--timeout", "1m")
	r.until(t, `^ +\d+\.\ds  Pod space/moon-greeting-\w+  created, Pending$`)
	r.wantProcesses(t, everyProcess...)
	if code := r.end(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	r.wantNoProcesses(t, 0)
	for _, want := range []string{
		`(?m)^ +\d+\.\ds  Greeter default/world  created$`,
		`(?m)^ +\d+\.\ds  Greeter default/world  Greeted$`,
		`(?m)^ +\d+\.\ds  Job default/world-greeting  Complete$`,
		`(?m)^ +\d+\.\ds  Job space/moon-greeting  Complete$`,
		`(?m)^ +\d+\.\ds  Pod default/world-greeting-\w+  Completed$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.output.String()) {
			t.Errorf("no line matches %s", want)
		}
	}
	for _, want := range []string{"definitions    greeters.test.ctrlkit.dev", "samples        Greeter default/world, Greeter space/moon", "all processes have ended"} {
		if !strings.Contains(r.stderr.String(), want) {
			t.Errorf("standard error does not say %q", want)
		}
	}
}

func TestRunEndsAfterItsTime(t *testing.T) {
	r := start(t, buildCommand(t), "--for", "2s", "--no-samples", "--logs")
	if code := r.end(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if r.output.Len() > 0 {
		t.Error("there is output although there were no samples")
	}
	if !strings.Contains(r.stderr.String(), "operator | ") {
		t.Error("the log is not shown")
	}
	r.wantNoProcesses(t, 0)
}

func TestRunSaysWhichConditionIsMissing(t *testing.T) {
	r := start(t, buildCommand(t), "--until", "greeter/world=Gone", "--until", "greeter/world", "--timeout", "3s")
	if code := r.end(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := "the conditions do not hold after 3s: greeter/world=Gone (0 of 1; Greeter default/world is Greet"; !strings.Contains(r.stderr.String(), want) {
		t.Errorf("standard error does not say %q", want)
	}
	r.wantNoProcesses(t, 0)
}

func TestRunTellsOfTheOperatorsEnd(t *testing.T) {
	logFile := filepath.Join(t.TempDir(), "operator.log")
	r := start(t, buildCommand(t), "--logs="+logFile, "--", "--crash", "2s")
	if code := r.end(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{"the operator ended: exit status 3 after ", "\n    greeter: it was asked to crash\n"} {
		if !strings.Contains(r.stderr.String(), want) {
			t.Errorf("standard error does not say %q", want)
		}
	}
	if content, err := os.ReadFile(logFile); err != nil || !strings.HasSuffix(string(content), "greeter: it was asked to crash\n") {
		t.Errorf("the log file: %v\n%s", err, content)
	}
	r.wantNoProcesses(t, 0)
}

func TestRunStopsOnInterrupt(t *testing.T) {
	r := start(t, buildCommand(t))
	r.until(t, "Greeter default/world  Greeted$")
	r.wantProcesses(t, everyProcess...)
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.end(t); code != 0 {
		t.Errorf("exit code %d, want 0: this is how a run without conditions ends", code)
	}
	r.wantNoProcesses(t, 0)
}

func TestRunInterruptedBeforeItsConditionsHold(t *testing.T) {
	r := start(t, buildCommand(t), "--until", "greeter/world=Gone")
	r.until(t, "Greeter default/world  Greeted$")
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.end(t); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	r.wantNoProcesses(t, 0)
}

// An operator that does not end when it is asked to keeps the first Ctrl-C waiting, not the second.
func TestRunEndsAtOnceOnTheSecondInterrupt(t *testing.T) {
	r := start(t, buildCommand(t), "--", "--spawn", "exec sleep 1001")
	r.until(t, "Greeter default/world  Greeted$")
	r.wantProcesses(t, append([]string{"sleep 1001"}, everyProcess...)...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, r.lines)
		_ = r.cmd.Wait() // its exit code is looked at below
	}()
	begun := time.Now()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for interrupting := true; interrupting; {
		_ = r.cmd.Process.Signal(os.Interrupt) // it may have ended
		select {
		case <-ticker.C:
		case <-ended:
			interrupting = false
		}
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if elapsed := time.Since(begun); elapsed > 8*time.Second {
		t.Errorf("it took %v, as if it had waited for the operator", elapsed)
	}
	r.wantNoProcesses(t, 10*time.Second)
}

func TestRunLeavesNothingWhenItIsKilled(t *testing.T) {
	r := start(t, buildCommand(t), "--", "--spawn", "exec sleep 1002")
	r.until(t, "Greeter default/world  Greeted$")
	r.wantProcesses(t, append([]string{"sleep 1002"}, everyProcess...)...)
	if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	r.wantNoProcesses(t, killedWithin)
}
