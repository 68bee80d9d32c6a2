// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import "syscall"

// superviseAttributes lets the program also end when its supervisor itself is killed.
func superviseAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
