// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/examples/05_user/mysqlserver"
	"github.com/ctrlkit/ctrlkit/examples/06_stream/natsserver"
)

// A system is what an operator manages outside of the cluster. It outlives the operator.
type system struct {
	direct string   // its address, for the checks
	front  *front   // where the operator reaches it
	args   []string // of the operator
	close  func() error
}

// startMySQL starts a MySQL server.
func startMySQL() (*system, error) {
	server, err := mysqlserver.Start("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	quit := []byte{1, 0, 0, 0, 1} // a client that closes its connection asks for nothing
	f, err := newFront(server.Address, func(sent []byte) bool { return !bytes.Equal(sent, quit) })
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return &system{
		direct: server.Address, front: f, args: []string{"--embedded-mysql="},
		close: func() error { return errors.Join(f.close(), server.Close()) },
	}, nil
}

// startNATS starts a NATS server.
func startNATS() (*system, error) {
	dir, err := os.MkdirTemp("", "ctrlkit-soak-nats-")
	if err != nil {
		return nil, err
	}
	server, stop, err := natsserver.Start(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	end := func() error {
		stop()
		return os.RemoveAll(dir)
	}
	direct := strings.TrimPrefix(server.ClientURL(), "nats://")
	// All calls are messages. What keeps a connection alive is none.
	f, err := newFront(direct, func(sent []byte) bool { return bytes.Contains(sent, []byte("PUB ")) })
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return &system{
		direct: direct, front: f, args: []string{"--nats-address=nats://" + f.address()},
		close: func() error { return errors.Join(f.close(), end()) },
	}, nil
}

// A front is a proxy in front of a system. It notes which process calls, and when.
type front struct {
	listener net.Listener
	system   string
	isCall   func(sent []byte) bool

	mu        sync.Mutex // guards what follows
	calls     []call
	operators []*operator
}

// A call is something that a process has sent to a system.
type call struct {
	pid int // 0 if it is not known
	at  time.Time
}

func newFront(system string, isCall func([]byte) bool) (*front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening in front of %s: %w", system, err)
	}
	f := &front{listener: listener, system: system, isCall: isCall}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			go f.serve(client)
		}
	}()
	return f, nil
}

func (f *front) address() string { return f.listener.Addr().String() }

func (f *front) close() error { return f.listener.Close() }

// serve passes on what both ends send, until one of them has closed the connection.
func (f *front) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // the other end learns of it
	pid := processOf(f.processes(), client.LocalAddr(), client.RemoteAddr())
	server, err := net.Dial("tcp", f.system)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // the other end learns of it
	go func() {
		_, _ = io.Copy(client, server) // one of both has ended
		_ = client.Close()             // the other end learns of it
	}()
	for buffer := make([]byte, 64<<10); ; {
		n, err := client.Read(buffer)
		if n > 0 && f.isCall(buffer[:n]) {
			f.note(call{pid: pid, at: time.Now()})
		}
		if n > 0 {
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// expect says whose calls will come.
func (f *front) expect(operators []*operator) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.operators = operators
}

func (f *front) processes() (ids []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.operators {
		ids = append(ids, o.process())
	}
	return ids
}

func (f *front) note(c call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
}

// since returns how often a process has called from a time on.
func (f *front) since(pid int, at time.Time) int {
	return f.count(func(c call) bool { return c.pid == pid && !c.at.Before(at) })
}

// unknown returns how many calls are of a process that is not known.
func (f *front) unknown() int { return f.count(func(c call) bool { return c.pid == 0 }) }

func (f *front) all() int { return f.count(func(call) bool { return true }) }

func (f *front) count(counts func(call) bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if counts(c) {
			n++
		}
	}
	return n
}
