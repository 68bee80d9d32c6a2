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

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
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
	exampletest.Must(t, err)
	// The path of a socket is short. mariadbd may be in sbin, and what belongs to it is beside
	// that.
	directory, err := os.MkdirTemp("", "mariadb")
	exampletest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	data := filepath.Join(directory, "data")
	common := []string{"--no-defaults", "--basedir=" + filepath.Dir(filepath.Dir(daemon)), "--datadir=" + data, "--user=" + me.Username}
	if output, err := exec.CommandContext(t.Context(), install, append(common, "--auth-root-authentication-method=normal", "--skip-test-db")...).CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, output)
	}
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	exampletest.Must(t, err)
	server := exec.CommandContext(t.Context(), daemon, append(common, "--bind-address=127.0.0.1", "--port="+port, "--socket="+filepath.Join(directory, "socket"))...)
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 10 * time.Second
	exampletest.Must(t, server.Start())
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
	exampletest.Must(t, err)
	defer listener.Close() //nolint:errcheck // nothing was written
	return listener.Addr().String()
}

// A User that names what another one has, its name, its account, its database and its Secret, gets
// nothing of it, and its deletion leaves that one its accounts, its password and the content of the
// database.
func TestATakerLeavesTheGiverItsAccount(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t))
	login := startMariaDB(t)
	admin, err := connectMySQL(t.Context(), login, nil)
	exampletest.Must(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	root := admin.(*mysqlAccounts) //nolint:errcheck // connectMySQL returns no other
	for _, statement := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.orders (text TEXT)", "INSERT INTO shop.orders VALUES ('an order')", "ALTER USER root@localhost IDENTIFIED BY 'administrator'"} {
		root.mustExec(t, statement)
	}
	start(t, c, "")
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: c.In("db-admin"), StringData: map[string]string{"username": "root", "password": "administrator"}},
		&v1.Server{ObjectMeta: c.In("db"), Spec: v1.ServerSpec{Address: login.Address, CredentialsSecret: "db-admin"}},
	} {
		exampletest.Must(t, c.Add(t.Context(), obj))
	}
	spec := v1.UserSpec{Server: "db", Name: "shop", Grants: []v1.Grant{{Database: "shop", Privileges: []v1.Privilege{"SELECT"}}}}
	exampletest.Must(t, c.Add(t.Context(), &v1.User{ObjectMeta: c.In("giver"), Spec: spec}))
	giver := exampletest.Await(t, c, "giver", exampletest.Ready[*v1.User])
	content := func() string {
		t.Helper()
		var secret corev1.Secret
		exampletest.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "giver-mysql"}, &secret))
		as := Login{Address: login.Address, Username: string(secret.Data["username"]), Password: string(secret.Data["password"])}
		db, err := as.open(giver)
		exampletest.Must(t, err)
		defer db.Close() //nolint:errcheck // only read from
		var text string
		exampletest.Must(t, db.QueryRowContext(t.Context(), "SELECT text FROM shop.orders").Scan(&text))
		return as.Username + " " + as.Password + " " + text
	}
	before := content()

	for _, secretName := range []string{"", "giver-mysql"} {
		taker := &v1.User{ObjectMeta: c.In("taker"), Spec: spec}
		taker.Spec.SecretName = secretName
		taker.Annotations = map[string]string{v1.AccountAnnotation: giver.Annotations[v1.AccountAnnotation]}
		exampletest.Must(t, c.Add(t.Context(), taker))
		taker = exampletest.Await(t, c, "taker", func(u *v1.User) bool {
			return exampletest.Ready(u) || exampletest.Reason(u, condition.Stalled) != ""
		})
		if exampletest.Ready(taker) != (secretName == "") || taker.Status.Username == giver.Status.Username {
			t.Errorf("the taker with the Secret %q has the account %q and is %s", secretName, taker.Status.Username, exampletest.Reason(taker, condition.Ready))
		}
		exampletest.Must(t, c.Delete(t.Context(), taker))
		c.Gone(t, taker)
		if after := content(); after != before {
			t.Errorf("a taker with the Secret %q has made of %q: %q", secretName, before, after)
		}
	}
}
