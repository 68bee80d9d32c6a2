// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
	"time"
)

// startMariaDB starts mariadbd as an ordinary process, with its data in a temporary directory. The
// test is skipped if it is not installed.
func startMariaDB(t *testing.T) Login {
	t.Helper()
	daemon, err := exec.LookPath("mariadbd")
	if err != nil {
		t.Skip("mariadbd is not installed: on Debian, apt-get install mariadb-server has it")
	}
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		t.Skip("mariadb-install-db is not installed: on Debian, apt-get install mariadb-server has it")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	// The path of a socket is short. mariadbd may be in sbin, and what belongs to it is beside
	// that.
	directory, err := os.MkdirTemp("", "mariadb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	data := filepath.Join(directory, "data")
	common := []string{"--no-defaults", "--basedir=" + filepath.Dir(filepath.Dir(daemon)), "--datadir=" + data, "--user=" + me.Username}
	if output, err := exec.CommandContext(t.Context(), install, append(common, "--auth-root-authentication-method=normal", "--skip-test-db")...).CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, output)
	}
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), daemon, append(common, "--bind-address=127.0.0.1", "--port="+port, "--socket="+filepath.Join(directory, "socket"))...)
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 10 * time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Wait() }()
	t.Cleanup(func() {
		if err := server.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-stopped
	})
	admin := Login{Address: address, Username: "root"}
	awaitAnswer(t, admin, stopped)
	return admin
}

// awaitAnswer waits until a server answers.
func awaitAnswer(t *testing.T, admin Login, stopped chan error) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		accounts, err := connectMySQL(t.Context(), admin, nil)
		if err == nil {
			_ = accounts.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("mariadbd does not answer: %v", err)
		}
		select {
		case err := <-stopped:
			stopped <- err
			t.Fatalf("mariadbd ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing was written
	return listener.Addr().String()
}
