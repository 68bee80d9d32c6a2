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
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port.number)
	if listener, err := net.Listen("tcp", address); err == nil {
		listener.Close()
		t.Errorf("listened on %s although it is reserved", address)
	}
	if err := port.release(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("listening on a released port: %v", err)
	}
	listener.Close()
}
