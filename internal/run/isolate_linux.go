// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// CanIsolate returns why programs can't run in a network of their own on this machine, or nil.
func CanIsolate() error {
	cmd := exec.Command("true")
	cmd.SysProcAttr = isolatedProcessGroup()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("this machine gives processes no network of their own: %w", err)
	}
	return nil
}

// isolatedProcessGroup starts a process in a group and in a network of its own. It is root in
// there, which is what it takes to bring up the loopback interface, and has the rights of the user
// outside.
func isolatedProcessGroup() *syscall.SysProcAttr {
	attributes := ownProcessGroup()
	attributes.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	return attributes
}

// loopbackUp brings up the loopback interface of a new network.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	defer unix.Close(socket) //nolint:errcheck // nothing was written
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("isolating the operator: bringing up the loopback interface: %w", err)
	}
	return nil
}
