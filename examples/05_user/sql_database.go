// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
)

func (a *mysqlAccounts) Databases(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	const what = "listing the databases"
	rows, err := a.db.QueryContext(ctx, "SELECT schema_name FROM information_schema.schemata "+
		"WHERE schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY schema_name")
	if err != nil {
		return nil, describe(what, err)
	}
	defer rows.Close() //nolint:errcheck // only read from
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, describe(what, err)
		}
		names = append(names, name)
	}
	return names, describe(what, rows.Err())
}

func (a *mysqlAccounts) Database(ctx context.Context, name string) (Settings, error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	var s Settings
	err := a.db.QueryRowContext(ctx, "SELECT default_character_set_name, default_collation_name FROM information_schema.schemata WHERE schema_name = ?", name).
		Scan(&s.CharacterSet, &s.Collation)
	if errors.Is(err, sql.ErrNoRows) {
		return s, ErrNoDatabase
	}
	return s, describe("looking for database "+name, err)
}

func (a *mysqlAccounts) CreateDatabase(ctx context.Context, name string, s Settings) error {
	answered, err := a.database(ctx, "creating database "+name, "CREATE DATABASE "+quote(name)+s.clause())
	if answered {
		return external.Refused(err)
	}
	return err
}

func (a *mysqlAccounts) AlterDatabase(ctx context.Context, name string, s Settings) error {
	_, err := a.database(ctx, "changing database "+name, "ALTER DATABASE "+quote(name)+s.clause())
	return err
}

// clause returns the settings for a statement.
func (s Settings) clause() string {
	text := ""
	if s.CharacterSet != "" {
		text += " CHARACTER SET " + quote(s.CharacterSet)
	}
	if s.Collation != "" {
		text += " COLLATE " + quote(s.Collation)
	}
	return text
}

// database executes a statement about a database, and reports whether the error is an answer of the
// server: then it has changed nothing.
func (a *mysqlAccounts) database(ctx context.Context, what, statement string) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	_, err = a.db.ExecContext(ctx, statement)
	var answer *mysql.MySQLError
	if !errors.As(err, &answer) {
		return false, describe(what, err)
	}
	switch number := answer.Number; number {
	case 1007:
		return true, fmt.Errorf("%s: there is one of that name", what)
	case 1115, 1253, 1273:
		return true, failure.Terminal(fmt.Errorf("%s: MySQL error %d: the server does not know the character set or the collation", what, number), "SettingsUnknown", "change spec.characterSet or spec.collation")
	}
	return true, describe(what, err)
}

func (a *mysqlAccounts) Tables(ctx context.Context, database string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	var n int
	err := a.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?", database).Scan(&n)
	return n, describe("counting the tables of database "+database, err)
}

func (a *mysqlAccounts) DropDatabase(ctx context.Context, name string) error {
	return a.exec(ctx, "dropping database "+name, "DROP DATABASE IF EXISTS "+quote(name))
}
