// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package supervisor

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// OwnProcessGroup does nothing: there are no process groups here.
func OwnProcessGroup() *syscall.SysProcAttr { return nil }

// terminateGroup ends a process at once: nothing else reaches it from another process.
func terminateGroup(cmd *exec.Cmd) error { return killGroup(cmd) }

// killGroup ends a started process and those that it has started.
func killGroup(cmd *exec.Cmd) error {
	if err := exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run(); err == nil {
		return nil
	}
	if err := cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
