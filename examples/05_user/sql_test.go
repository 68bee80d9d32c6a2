// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logrustest "github.com/sirupsen/logrus/hooks/test"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/05_user/mysqlserver"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

const canary = `ca"n'ary\-PW1`

// The tests of the client run against the embedded server, over the wire, and against mariadbd if
// it is installed.
func TestEmbedded(t *testing.T) {
	server, err := mysqlserver.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	logged := logrustest.NewGlobal()
	testAccounts(t, Login{Address: server.Address, Username: mysqlserver.Username, Password: mysqlserver.Password})
	if entries := logged.AllEntries(); len(entries) > 0 { // statements have passwords
		t.Errorf("the server logs %d lines, the first is %q", len(entries), entries[0].Message)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMariaDB(t *testing.T) {
	rings.Test(t, "starts a server")
	testAccounts(t, startMariaDB(t))
}

// testAccounts checks all methods of Accounts against a server that has a database shop.
func testAccounts(t *testing.T, admin Login) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, *mysqlAccounts)
	}{
		{"a life", testLife}, {"grants", testGrants}, {"excess", testExcess}, {"a change that was interrupted", testInterrupted}, {"errors", testErrors},
	} {
		t.Run(tt.name, func(t *testing.T) {
			accounts, err := connectMySQL(t.Context(), admin, &v1.User{})
			if err != nil {
				t.Fatal(err)
			}
			tt.test(t, accounts.(*mysqlAccounts)) //nolint:errcheck // connectMySQL returns no other
			for _, name := range []string{"life", "grants", "excess", "half"} {
				if err := accounts.Drop(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
			if err := accounts.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("wrong credentials", func(t *testing.T) {
		wrong := admin
		wrong.Password = canary
		if _, err := connectMySQL(t.Context(), wrong, &v1.User{}); !errors.Is(err, ErrRejected) || strings.Contains(err.Error(), "ary") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no server", func(t *testing.T) {
		wrong := admin
		wrong.Address = "127.0.0.1:1"
		if _, err := connectMySQL(t.Context(), wrong, &v1.User{}); err == nil || errors.Is(err, ErrRejected) {
			t.Errorf("got %v", err)
		}
	})
}

// testLife creates an account, changes its password, and drops it, each twice.
func testLife(t *testing.T, a *mysqlAccounts) {
	const account = "life"
	if _, err := a.Grants(t.Context(), account); !errors.Is(err, ErrNoAccount) {
		t.Fatalf("before: %v", err)
	}
	checkLogins(t, a, account, map[string]bool{canary: false})
	for range 2 {
		if err := a.SetPassword(t.Context(), account, canary); err != nil {
			t.Fatal(err)
		}
		checkLogins(t, a, account, map[string]bool{canary: true, "other": false, "": false})
	}
	for range 2 {
		if err := a.SetPassword(t.Context(), account, "other"); err != nil {
			t.Fatal(err)
		}
		checkLogins(t, a, account, map[string]bool{canary: false, "other": true})
	}
	for range 2 {
		if err := a.Drop(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		checkLogins(t, a, account, map[string]bool{"other": false})
	}
}

func checkLogins(t *testing.T, a Accounts, account string, passwords map[string]bool) {
	t.Helper()
	for password, want := range passwords {
		if got, err := a.Login(t.Context(), account, password); err != nil || got != want {
			t.Errorf("a login of %s with %q: %t and error %v, want %t", account, password, got, err, want)
		}
	}
}

// testGrants moves an account from grants to other grants, and checks that what is executed is the
// difference alone.
func testGrants(t *testing.T, a *mysqlAccounts) {
	const account = "grants"
	if err := a.SetPassword(t.Context(), account, canary); err != nil {
		t.Fatal(err)
	}
	shop, table, other := a.Target("shop", ""), a.Target("shop", "orders"), a.Target("my_db", "")
	a.mustExec(t, "CREATE DATABASE IF NOT EXISTS shop")
	a.mustExec(t, "CREATE TABLE IF NOT EXISTS shop.orders (id INT)")
	for _, tt := range []struct {
		name                    string
		wanted, missing, excess Grants
	}{
		{"none", Grants{}, Grants{}, Grants{}},
		{"some", Grants{shop: {"INSERT", "SELECT"}, table: {"UPDATE"}}, Grants{shop: {"INSERT", "SELECT"}, table: {"UPDATE"}}, Grants{}},
		{"one more, one less", Grants{shop: {"DELETE", "SELECT"}, table: {"UPDATE"}}, Grants{shop: {"DELETE"}}, Grants{shop: {"INSERT"}}},
		{"an underscore", Grants{other: {"SELECT"}}, Grants{other: {"SELECT"}}, Grants{shop: {"DELETE", "SELECT"}, table: {"UPDATE"}}},
		{"of two words", Grants{other: {"CREATE TEMPORARY TABLES", "SELECT"}}, Grants{other: {"CREATE TEMPORARY TABLES"}}, Grants{}},
		{"everything", Grants{shop: sorted(everything)}, Grants{shop: sorted(everything)}, Grants{other: {"CREATE TEMPORARY TABLES", "SELECT"}}},
		{"none again", Grants{}, Grants{}, Grants{shop: sorted(everything)}},
	} {
		present, err := a.Grants(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		missing, excess := difference(present, tt.wanted)
		if diff := cmp.Diff([]Grants{tt.missing, tt.excess}, []Grants{missing, excess}); diff != "" {
			t.Errorf("%s: missing and excess (-want +got):\n%s", tt.name, diff)
		}
		bring(t, a, account, tt.wanted, 1)
	}
}

// testExcess revokes what no User can ask for.
func testExcess(t *testing.T, a *mysqlAccounts) {
	const account = "excess"
	if err := a.SetPassword(t.Context(), account, canary); err != nil {
		t.Fatal(err)
	}
	a.mustExec(t, "CREATE DATABASE IF NOT EXISTS shop")
	a.mustExec(t, "CREATE TABLE IF NOT EXISTS shop.orders (id INT)")
	a.mustExec(t, "CREATE ROLE IF NOT EXISTS auditor")
	wanted := Grants{a.Target("shop", ""): {"SELECT"}}
	for _, statement := range []string{
		"GRANT ALL PRIVILEGES ON `shop`.* TO excess",
		"GRANT ALL PRIVILEGES ON *.* TO excess WITH GRANT OPTION",
		"GRANT SELECT, INSERT ON `shop`.* TO excess WITH GRANT OPTION",
		"GRANT SELECT ON `a_b`.* TO excess", // a pattern
		"GRANT PROCESS ON *.* TO excess",
		"GRANT auditor TO excess",
		"GRANT SELECT (id), UPDATE (id) ON shop.orders TO excess",
	} {
		if a.literal && strings.Contains(statement, "(id)") {
			continue // the embedded server has no privileges on columns
		}
		a.mustExec(t, statement)
		bring(t, a, account, wanted, 2) // what remains of ALL PRIVILEGES is known only then
	}
}

// bring makes the grants of an account as wanted, and checks that they are after so many tries.
func bring(t *testing.T, a *mysqlAccounts, account string, wanted Grants, tries int) {
	t.Helper()
	for range tries {
		present, err := a.Grants(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		missing, excess := difference(present, wanted)
		if err := errors.Join(a.Grant(t.Context(), account, missing), a.Revoke(t.Context(), account, excess)); err != nil {
			t.Errorf("from %s to %s: %v", present, wanted, err)
		}
	}
	present, err := a.Grants(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	if missing, excess := difference(present, wanted); len(missing)+len(excess) > 0 {
		t.Errorf("%s is missing, and %s is too much, want %s", missing, excess, wanted)
	}
}

// testInterrupted ends between the statements of a change, as a crash does, and repeats it.
func testInterrupted(t *testing.T, a *mysqlAccounts) {
	const account = "half"
	a.mustExec(t, "CREATE USER half IDENTIFIED BY 'first'") // the crash came before ALTER USER
	if err := a.SetPassword(t.Context(), account, canary); err != nil {
		t.Fatal(err)
	}
	checkLogins(t, a, account, map[string]bool{"first": false, canary: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.SetPassword(ctx, account, "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	checkLogins(t, a, account, map[string]bool{"never": false, canary: true})
}

// testErrors checks that no error has a password, although the server quotes the statement.
func testErrors(t *testing.T, a *mysqlAccounts) {
	_, raw := a.db.ExecContext(t.Context(), "ALTER USR half IDENTIFIED BY ?", canary)
	if raw == nil {
		t.Fatal("the statement is accepted")
	}
	t.Logf("without describe it were: %v", raw)
	for name, err := range map[string]error{
		"syntax":  a.exec(t.Context(), "doing", "ALTER USR half IDENTIFIED BY ?", canary),
		"unknown": a.exec(t.Context(), "doing", "ALTER USER unknown IDENTIFIED BY ?", canary),
		"canary":  a.exec(t.Context(), "doing", "CREATE USER ? IDENTIFIED BY "+canary, canary),
		"timeout": func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			return a.exec(ctx, "doing", "ALTER USER x IDENTIFIED BY ?", canary)
		}(),
	} {
		if err == nil || strings.Contains(err.Error(), "ary") || !strings.HasPrefix(err.Error(), "doing: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (a *mysqlAccounts) mustExec(t *testing.T, statement string) {
	t.Helper()
	if _, err := a.db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
