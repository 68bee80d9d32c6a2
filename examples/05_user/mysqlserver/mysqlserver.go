// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package mysqlserver is a MySQL server in this process, with all data in memory: for
// demonstrations and tests, not for production.
package mysqlserver

import (
	"errors"
	"fmt"
	"net"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/sirupsen/logrus"
)

// Database is a database that a server has from the start, for the grants of the samples.
const Database = "shop"

// Username and Password are those of the administrator. The samples have them in a Secret. They
// protect nothing: the server holds no data, and listens where it is asked to, which is the
// loopback interface unless a flag of the operator says otherwise.
const (
	Username = "root"
	Password = "embedded"
)

// A Server is a running server.
type Server struct {
	// Address is the host and port on which it listens.
	Address string

	server *server.Server
	done   chan error
}

// Start starts a server that listens on an address, such as localhost:0. It has one administrator.
func Start(address string) (*Server, error) {
	logrus.SetLevel(logrus.PanicLevel) // the server logs statements, which have passwords
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("starting the embedded MySQL server: %w", err)
	}
	provider := memory.NewDBProvider(memory.NewDatabase(Database))
	engine := sqle.NewDefault(provider)
	users := engine.Analyzer.Catalog.MySQLDb
	users.SetPersister(noPersister{}) // without one, CREATE USER panics
	users.SetEnabled(true)
	editor := users.Editor()
	users.AddSuperUser(editor, Username, "%", Password)
	editor.Close()
	config := server.Config{Protocol: "tcp", Address: listener.Addr().String(), Listener: listener}
	s, err := server.NewServer(config, engine, sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the embedded MySQL server: %w", err), listener.Close())
	}
	started := &Server{Address: listener.Addr().String(), server: s, done: make(chan error, 1)}
	go func() { started.done <- s.Start() }()
	return started, nil
}

// Close stops the server, and waits until it has stopped.
func (s *Server) Close() error {
	err := s.server.Close()
	<-s.done // that the listener was closed
	return err
}

// noPersister keeps nothing: accounts end with the process.
type noPersister struct{}

var _ mysql_db.MySQLDbPersistence = noPersister{}

func (noPersister) Persist(*sql.Context, []byte) error { return nil }
