// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A reservedPort is a free TCP port of 127.0.0.1 that no other process can take: a socket is bound
// to it that does not listen, and that shares the port only with sockets that also set
// SO_REUSEPORT. The programs of Kubernetes do so with --permit-port-sharing.
type reservedPort struct {
	number int
	socket int
}

// reservePort finds a free port and holds it until release is called.
func reservePort() (*reservedPort, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	unix.CloseOnExec(socket)
	number, err := bindAnyPort(socket)
	if err != nil {
		_ = unix.Close(socket) // the bind error is the one that matters
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	return &reservedPort{number: number, socket: socket}, nil
}

func bindAnyPort(socket int) (int, error) {
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	address, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("the socket has an address of type %T", name)
	}
	return address.Port, nil
}

func (p *reservedPort) release() error {
	if err := unix.Close(p.socket); err != nil {
		return fmt.Errorf("releasing port %d: %w", p.number, err)
	}
	return nil
}
