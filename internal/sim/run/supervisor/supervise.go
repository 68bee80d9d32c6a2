// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// TerminateRequest is the byte that asks a supervisor to terminate its program.
const TerminateRequest = 't'

// The exit code of a program that a signal ended is SignalCode plus the number of the signal.
const SignalCode = 128

// Supervise runs a program until it ends by itself, or until the process that holds the other end
// of lifeline ends it:
//
//   - The byte 't' asks the program's process group to terminate, and kills it after the grace
//     period.
//   - The end of the stream kills it at once. The stream also ends when its holder is killed, so
//     that the program never outlives the holder.
//   - Processes that remain in the group when the program has ended are killed.
//
// The result is the program's exit code. As in a shell, it is 128 plus the number of the signal if
// a signal ended the program. An error means that it could not be started.
func Supervise(lifeline io.Reader, argv []string, grace time.Duration, stdout, stderr io.Writer) (int, error) {
	// The parent-death signal of the program (Linux) fires when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = superviseAttributes()
	if err := cmd.Start(); err != nil {
		return -1, fmt.Errorf("starting the operator: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	requests := readRequests(lifeline)

	var deadline <-chan time.Time
	for {
		select {
		case err := <-ended:
			_ = killGroup(cmd) // the group is usually empty
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return -1, fmt.Errorf("waiting for the operator: %w", err)
			}
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				return SignalCode + int(status.Signal()), nil
			}
			return cmd.ProcessState.ExitCode(), nil
		case request, open := <-requests:
			switch {
			case !open:
				requests = nil
				_ = killGroup(cmd) // the reader of an error is gone
			case request == TerminateRequest && deadline == nil:
				_ = terminateGroup(cmd) // if it fails, the deadline kills the group
				deadline = time.After(grace)
			}
		case <-deadline:
			_ = killGroup(cmd)
		}
	}
}

// readRequests returns a channel with the bytes of lifeline. It is closed when lifeline ends.
func readRequests(lifeline io.Reader) <-chan byte {
	requests := make(chan byte)
	go func() {
		defer close(requests)
		buffer := make([]byte, 1)
		for {
			n, err := lifeline.Read(buffer)
			if n > 0 {
				requests <- buffer[0]
			}
			if err != nil {
				return
			}
		}
	}()
	return requests
}
