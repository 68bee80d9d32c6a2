// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net"
	"testing"
)

func TestReservedPortCannotBeTaken(t *testing.T) {
	port, err := reservePort()
	must(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port.number)
	if listener, err := net.Listen("tcp", address); err == nil {
		listener.Close()
		t.Errorf("listened on %s although it is reserved", address)
	}
	must(t, port.release())
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("listening on a released port: %v", err)
	}
	listener.Close()
}
