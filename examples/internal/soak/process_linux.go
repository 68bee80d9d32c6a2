// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// processAttributes keep Ctrl-C from the operator, which is stopped by us, and end it if we are
// killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
