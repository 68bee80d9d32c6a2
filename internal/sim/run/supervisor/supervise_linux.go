// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import "syscall"

// superviseAttributes makes the kernel kill the program if its supervisor is killed.
func superviseAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
