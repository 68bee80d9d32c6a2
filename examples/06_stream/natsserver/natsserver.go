// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package natsserver is a NATS server with JetStream in this process, for demonstrations and tests.
package natsserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Start starts a server that listens on a free port of the local host, and keeps its messages in a
// directory. Options may be changed before it starts.
func Start(dir string, change ...func(*server.Options)) (s *server.Server, stop func(), err error) {
	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true}
	for _, f := range change {
		f(options)
	}
	if s, err = server.NewServer(options); err != nil {
		return nil, nil, fmt.Errorf("configuring the NATS server: %w", err)
	}
	stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		stop()
		return nil, nil, errors.New("the NATS server does not accept connections")
	}
	return s, stop, nil
}
