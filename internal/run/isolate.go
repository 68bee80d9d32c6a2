// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

// RefusedPrefix begins the lines in which an isolated supervisor names what its program has tried
// to reach.
const RefusedPrefix = "\x00ctrlkit refused "

// Isolation lets a program reach one address, and no other: it runs in a network of its own. A
// proxy in it refuses everything and names it; programs that use no proxy find no route.
type Isolation struct {
	Socket  string // Unix socket outside, which leads to Address
	Address string // TCP address inside and outside, on the loopback interface
}

// Arguments returns what the supervisor is called with: two arguments.
func (i Isolation) Arguments() []string { return []string{"--isolated", i.Socket + "," + i.Address} }

// ParseIsolation reads the value of --isolated.
func ParseIsolation(value string) (*Isolation, error) {
	socket, address, ok := strings.Cut(value, ",")
	if !ok {
		return nil, fmt.Errorf("--isolated %s: must be SOCKET,ADDRESS", value)
	}
	return &Isolation{socket, address}, nil
}

// Forward makes Socket lead to Address, outside, until the returned function is called.
func (i Isolation) Forward() (stop func(), err error) {
	listener, err := net.Listen("unix", i.Socket)
	if err != nil {
		return nil, fmt.Errorf("isolating the operator: %w", err)
	}
	go forward(listener, "tcp", i.Address)
	return func() { _ = listener.Close() }, nil //nolint:errcheck // nothing was written
}

// Enter is called in the network of the program, before it starts: it makes Address lead to Socket,
// and starts the proxy, whose address it puts into the environment. refused receives a line for
// each host.
func (i Isolation) Enter(refused io.Writer) error {
	if err := loopbackUp(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", i.Address)
	if err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	go forward(listener, "unix", i.Socket)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("isolating the operator: %w", err)
	}
	go func() { _ = http.Serve(proxy, refusing(refused)) }() //nolint:gosec,errcheck // in a network of its own, until the process ends
	address := "http://" + proxy.Addr().String()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if err := os.Setenv(name, address); err != nil {
			return fmt.Errorf("isolating the operator: %w", err)
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if err := os.Setenv(name, "127.0.0.1,localhost"); err != nil {
			return fmt.Errorf("isolating the operator: %w", err)
		}
	}
	return nil
}

func refusing(to io.Writer) http.Handler {
	var mu sync.Mutex
	known := map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !known[r.Host] {
			known[r.Host] = true
			fmt.Fprintf(to, "%s%s\n", RefusedPrefix, r.Host)
		}
		http.Error(w, "ctrlkit: the operator runs on a copy of the cluster, and reaches nothing else", http.StatusForbidden)
	})
}

// forward passes connections on until the listener is closed.
func forward(listener net.Listener, network, address string) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close() //nolint:errcheck // nothing more is written
			out, err := net.Dial(network, address)
			if err != nil {
				return
			}
			defer out.Close() //nolint:errcheck // nothing more is written
			done := make(chan struct{}, 2)
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from) //nolint:errcheck // one of the two has gone
				done <- struct{}{}
			}
			go pass(out, in)
			go pass(in, out)
			<-done
		}()
	}
}
