// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"os/exec"
	"syscall"
	"time"
)

// reportTime is how long a test may take to report what it has found after an interrupt.
const reportTime = 2 * time.Minute

// interruptGroup makes the end of the context interrupt the command and the processes that it
// starts, instead of killing the command: go test does not pass signals on.
func interruptGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) }
	c.WaitDelay = reportTime
}
