// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/failure"
)

// Accounts are the accounts of one MySQL or MariaDB server. All methods may be called again after a
// crash. No error has a password in it.
type Accounts interface {
	// Grants returns the grants of an account, or ErrNoAccount.
	Grants(ctx context.Context, account string) (Grants, error)
	// SetPassword sets the password of an account, which it creates if it does not exist.
	SetPassword(ctx context.Context, account, password string) error
	// Login reports whether an account exists and has this password.
	Login(ctx context.Context, account, password string) (bool, error)
	// Grant adds privileges, and Revoke takes them.
	Grant(ctx context.Context, account string, grants Grants) error
	Revoke(ctx context.Context, account string, grants Grants) error
	// Drop removes an account, if it exists. Its open connections stay until they end.
	Drop(ctx context.Context, account string) error
	// Databases returns the names of the databases, without those of the server itself.
	Databases(ctx context.Context) ([]string, error)
	// Database returns the settings of a database, or ErrNoDatabase.
	Database(ctx context.Context, name string) (Settings, error)
	// CreateDatabase creates a database. If there is one of the name, the error says that it was
	// refused: see external.Refused.
	CreateDatabase(ctx context.Context, name string, s Settings) error
	// AlterDatabase changes the settings that are not empty.
	AlterDatabase(ctx context.Context, name string, s Settings) error
	// Tables returns how many tables and views a database has, 0 if it does not exist.
	Tables(ctx context.Context, database string) (int, error)
	// DropDatabase drops a database with its tables, if it exists.
	DropDatabase(ctx context.Context, name string) error
	// Target writes a database, or a table of it, as the keys of Grants have it.
	Target(database, table string) string
	// Version returns the version of the server.
	Version() string
	Close() error
}

// Login is a server, and an account that may administer it.
type Login struct {
	Address  string
	TLS      v1.TLSMode
	Username string
	Password string
}

// Settings are what new tables of a database have. What is empty is left to the server.
type Settings struct{ CharacterSet, Collation string }

// Connect connects to a server on behalf of an object. The error is ErrRejected if the server does
// not accept the login.
type Connect func(ctx context.Context, login Login, object client.Object) (Accounts, error)

// Errors of accounts. Test for them with errors.Is.
var (
	ErrNoAccount  = errors.New("no such account")
	ErrNoDatabase = errors.New("no such database")
	ErrRejected   = errors.New("the server rejects the username or the password")
)

// maxCall is how long one connection, or one statement, may take.
const maxCall = 10 * time.Second

// mysqlAccounts are the accounts of a server that is connected over the network.
type mysqlAccounts struct {
	db      *sql.DB
	login   Login
	version string
	literal bool // the server takes _ and % in the name of a database literally
}

var _ Accounts = (*mysqlAccounts)(nil)

// connectMySQL implements Connect.
func connectMySQL(ctx context.Context, login Login, object client.Object) (Accounts, error) {
	a := &mysqlAccounts{login: login}
	var err error
	if a.db, err = login.open(object); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	var comment string
	if err := a.db.QueryRowContext(ctx, "SELECT VERSION(), @@version_comment").Scan(&a.version, &comment); err != nil {
		return nil, errors.Join(describe("connecting to "+login.Address, err), a.Close())
	}
	a.literal = comment == "Dolt" // the embedded server
	return a, nil
}

// open returns a pool of at most one connection.
func (l Login) open(object client.Object) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd = "tcp", l.Address, l.Username, l.Password
	config.TLSConfig = map[v1.TLSMode]string{v1.TLSRequired: "true", v1.TLSDisabled: "false"}[l.TLS]
	if config.TLSConfig == "" {
		config.TLSConfig = "preferred"
	}
	config.Timeout, config.ReadTimeout, config.WriteTimeout = maxCall, maxCall, maxCall
	config.InterpolateParams = true // no server prepares CREATE USER
	config.Logger = &mysql.NopLogger{}
	if object != nil {
		config.ConnectionAttributes = "object:" + client.ObjectKeyFromObject(object).String()
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, describe("connecting to "+l.Address, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

func (a *mysqlAccounts) Version() string { return a.version }

func (a *mysqlAccounts) Close() error { return a.db.Close() }

func (a *mysqlAccounts) Grants(ctx context.Context, account string) (Grants, error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	var found int
	if err := a.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM mysql.user WHERE user = ? AND host = '%'", account).Scan(&found); err != nil {
		return nil, describe("looking for account "+account, err)
	}
	if found == 0 {
		return nil, ErrNoAccount
	}
	rows, err := a.db.QueryContext(ctx, "SHOW GRANTS FOR "+nameOf(account))
	if err != nil {
		return nil, describe("reading the grants of "+account, err)
	}
	defer rows.Close() //nolint:errcheck // only read from
	grants := Grants{}
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, describe("reading the grants of "+account, err)
		}
		grants.parseGrant(line)
	}
	return grants, describe("reading the grants of "+account, rows.Err())
}

func (a *mysqlAccounts) SetPassword(ctx context.Context, account, password string) error {
	// An account that exists keeps its password at the first statement, and one that was created
	// just now gets the same one again: whatever was there, and after a crash in between.
	if err := a.exec(ctx, "creating account "+account, "CREATE USER IF NOT EXISTS "+nameOf(account)+" IDENTIFIED BY ?", password); err != nil {
		return err
	}
	return a.exec(ctx, "setting the password of "+account, "ALTER USER "+nameOf(account)+" IDENTIFIED BY ?", password)
}

func (a *mysqlAccounts) Login(ctx context.Context, account, password string) (bool, error) {
	login := a.login
	login.Username, login.Password = account, password
	db, err := login.open(nil)
	if err != nil {
		return false, err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	err = describe("logging in as "+account, db.PingContext(ctx))
	if errors.Is(err, ErrRejected) {
		return false, nil
	}
	return err == nil, err
}

func (a *mysqlAccounts) Grant(ctx context.Context, account string, grants Grants) error {
	for _, on := range slices.Sorted(maps.Keys(grants)) {
		what := strings.Join(grants[on], ", ") + " ON " + on
		if err := a.exec(ctx, "granting "+what+" to "+account, "GRANT "+what+" TO "+nameOf(account)); err != nil {
			return err
		}
	}
	return nil
}

func (a *mysqlAccounts) Revoke(ctx context.Context, account string, grants Grants) error {
	for _, on := range slices.Sorted(maps.Keys(grants)) {
		for _, privileges := range apart(grants[on]) {
			what := strings.Join(privileges, ", ")
			if on != "" {
				what += " ON " + on
			}
			if err := a.exec(ctx, "revoking "+what+" from "+account, "REVOKE "+what+" FROM "+nameOf(account)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *mysqlAccounts) Drop(ctx context.Context, account string) error {
	return a.exec(ctx, "dropping account "+account, "DROP USER IF EXISTS "+nameOf(account))
}

// Target escapes what would be a wildcard: in a grant on a database, MySQL takes its name for a
// pattern.
func (a *mysqlAccounts) Target(database, table string) string {
	if table != "" {
		return quote(database) + "." + quote(table)
	}
	if !a.literal {
		database = strings.NewReplacer("_", `\_`, "%", `\%`).Replace(database)
	}
	return quote(database) + ".*"
}

// apart returns the privileges for one statement each: ALL PRIVILEGES stands alone.
func apart(privileges []string) [][]string {
	if !slices.Contains(privileges, allPrivileges) {
		return [][]string{privileges}
	}
	if rest := without(privileges, []string{allPrivileges}); len(rest) > 0 {
		return [][]string{{allPrivileges}, rest}
	}
	return [][]string{{allPrivileges}}
}

// exec executes a statement. What describes it in an error.
func (a *mysqlAccounts) exec(ctx context.Context, what, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	_, err := a.db.ExecContext(ctx, statement, args...)
	return describe(what, err)
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func nameOf(account string) string { return quote(account) + "@`%`" }

// describe returns an error of the driver without the text of the server, which may quote the
// statement, and with it a password. The number of the error is enough to look it up.
func describe(what string, err error) error {
	var answer *mysql.MySQLError
	if !errors.As(err, &answer) {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err) // of the network, or of the context
		}
		return nil
	}
	switch number := answer.Number; number {
	case 1045, 2012: // 2012 is how the embedded server answers for an account that does not exist
		return fmt.Errorf("%s: %w", what, ErrRejected)
	case 1044, 1142, 1227, 1410:
		return failure.Mark(fmt.Errorf("%s: MySQL error %d: the administrator lacks a privilege", what, number),
			failure.WithClass(failure.ClassForbidden), failure.WithReason("PrivilegeMissing"),
			failure.WithRemedy("grant the administrator of the Server CREATE USER, and what Users ask for WITH GRANT OPTION"))
	case 1146:
		return failure.Mark(fmt.Errorf("%s: MySQL error %d: there is no such table", what, number),
			failure.WithClass(failure.ClassNotFound), failure.WithReason("TableNotFound"), failure.WithRemedy("create the table, or change spec.grants"))
	case 1819:
		return failure.Terminal(fmt.Errorf("%s: MySQL error %d: the password does not satisfy the policy of the server", what, number), "PasswordPolicy", "")
	default:
		return fmt.Errorf("%s: MySQL error %d (SQLSTATE %s)", what, number, answer.SQLState)
	}
}
