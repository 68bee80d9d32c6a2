// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// terminateRequest is the byte that asks a supervisor to end its program gently.
const terminateRequest = 't'

// signalCode is added to the number of the signal that ended a program to make its exit code.
const signalCode = 128

// Supervise runs a program until it ends by itself, or until the process that holds the other end
// of lifeline wants it to end: the byte 't' asks the program's whole process group to terminate and
// kills it when grace has passed; the end of the stream kills it at once. As the stream ends in
// whichever way its holder dies, nothing outlives the holder. What the program leaves in its
// process group when it ends is killed too.
//
// The result is the program's exit code: as in a shell, 128 and the number of the signal when one
// ended it. An error means that it could not be started.
func Supervise(lifeline io.Reader, argv []string, grace time.Duration, stdout, stderr io.Writer) (int, error) {
	// The parent-death signal of the program, where there is one, fires when the thread that
	// started it ends.
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
			_ = killGroup(cmd) // an empty group is the usual case
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return -1, fmt.Errorf("waiting for the operator: %w", err)
			}
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				return signalCode + int(status.Signal()), nil
			}
			return cmd.ProcessState.ExitCode(), nil
		case request, open := <-requests:
			switch {
			case !open:
				requests = nil
				_ = killGroup(cmd) // whoever would read the error is gone
			case request == terminateRequest && deadline == nil:
				_ = terminateGroup(cmd) // when it fails, the deadline kills
				deadline = time.After(grace)
			}
		case <-deadline:
			_ = killGroup(cmd)
		}
	}
}

// readRequests returns the bytes of lifeline as a channel that is closed when lifeline ends.
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
