//go:build !unix

package controlplane

import (
	"fmt"
	"net"
)

// A reservedPort is a TCP port of 127.0.0.1 that was free when it was asked for.
// Nothing holds it here: another process may take it before the server does,
// which then says so and ends.
type reservedPort struct {
	number int
}

func reservePort() (*reservedPort, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	number := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	return &reservedPort{number: number}, nil
}

func (*reservedPort) release() error { return nil }
