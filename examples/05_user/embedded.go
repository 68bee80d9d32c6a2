// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

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

// embeddedDatabase is a database that the embedded server has from the start, for the grants of
// the samples.
const embeddedDatabase = "shop"

// embeddedAdmin administers the embedded server. The samples have it in a Secret. It protects
// nothing: the server holds no data, and listens on the loopback interface unless a flag says
// otherwise.
var embeddedAdmin = Login{Username: "root", Password: "embedded"}

// embeddedServer is a MySQL server in this process, with all data in memory: for the demo and for
// tests, not for production.
type embeddedServer struct {
	address string
	server  *server.Server
	done    chan error
}

// startEmbedded starts a server that listens on an address, such as localhost:0. It has one
// administrator.
func startEmbedded(address string, admin Login) (*embeddedServer, error) {
	logrus.SetLevel(logrus.PanicLevel) // the server logs statements, which have passwords
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("starting the embedded MySQL server: %w", err)
	}
	provider := memory.NewDBProvider(memory.NewDatabase(embeddedDatabase))
	engine := sqle.NewDefault(provider)
	users := engine.Analyzer.Catalog.MySQLDb
	users.SetPersister(noPersister{}) // without one, CREATE USER panics
	users.SetEnabled(true)
	editor := users.Editor()
	users.AddSuperUser(editor, admin.Username, "%", admin.Password)
	editor.Close()
	config := server.Config{Protocol: "tcp", Address: listener.Addr().String(), Listener: listener}
	s, err := server.NewServer(config, engine, sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the embedded MySQL server: %w", err), listener.Close())
	}
	started := &embeddedServer{address: listener.Addr().String(), server: s, done: make(chan error, 1)}
	go func() { started.done <- s.Start() }()
	return started, nil
}

// Close stops the server, and waits until it has stopped.
func (e *embeddedServer) Close() error {
	err := e.server.Close()
	<-e.done // that the listener was closed
	return err
}

// noPersister keeps nothing: accounts end with the process.
type noPersister struct{}

var _ mysql_db.MySQLDbPersistence = noPersister{}

func (noPersister) Persist(*sql.Context, []byte) error { return nil }
