// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"net"
	"syscall"
)

// processAttributes keep Ctrl-C from the operator, which is stopped by us.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// seesProcesses says that processOf and processWith find nothing: there is no /proc.
const seesProcesses = false

func processOf([]int, net.Addr, net.Addr) int { return 0 }

func processWith(string) int { return 0 }
