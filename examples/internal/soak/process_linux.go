// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes keep Ctrl-C from the operator, which is stopped by us, and end it if we are
// killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// seesProcesses says that processOf and processWith find processes.
const seesProcesses = true

// processOf returns which of some processes is at the other end of a connection of this machine
// over IPv4, 0 if none is.
func processOf(among []int, local, remote net.Addr) int {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return 0
	}
	from, to := inTable(remote), inTable(local)
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 9 && fields[1] == from && fields[2] == to {
			return holderOf(among, "socket:["+fields[9]+"]")
		}
	}
	return 0
}

// inTable writes an address as /proc/net/tcp does: hexadecimal, in the order of bytes of the
// machine.
func inTable(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return ""
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(tcp.IP.To4()), tcp.Port)
}

// holderOf returns which of some processes has a file open, by the link in /proc.
func holderOf(among []int, link string) int {
	for _, pid := range among {
		descriptors, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is well formed
		for _, d := range descriptors {
			if to, err := os.Readlink(d); err == nil && to == link {
				return pid
			}
		}
	}
	return 0
}

// processWith returns the process that has been started with an argument, 0 if there is none.
func processWith(argument string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well formed
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains("\x00"+string(line), "\x00"+argument+"\x00") {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2]) // it matches the pattern
			return pid
		}
	}
	return 0
}
