// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "syscall"

// processAttributes keep Ctrl-C from the operator, which is stopped by us.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
