// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Role and a Database stand for what has that name in PostgreSQL. Users choose the names.
type (
	Role     = testkind.Object[roleSpec, testkind.Status]
	Database = testkind.Object[databaseSpec, testkind.Status]

	roleSpec     named
	databaseSpec named

	named struct {
		Name        string `json:"name"`
		Connections int    `json:"connections"`
		Secret      string `json:"secret,omitempty"` // gets the name and a password
	}
)

var (
	roleKind     = testkind.Of[roleSpec, testkind.Status]("Role")
	databaseKind = testkind.Of[databaseSpec, testkind.Status]("Database")
)

// newNamed returns a Role or a Database.
func newNamed(kind string, spec named) client.Object {
	if kind == "Role" {
		return &Role{Spec: roleSpec(spec)}
	}
	return &Database{Spec: databaseSpec(spec)}
}

func specOf(obj client.Object) named {
	if role, ok := obj.(*Role); ok {
		return named(role.Spec)
	}
	return named(obj.(*Database).Spec) //nolint:errcheck // there are two kinds
}

// A catalog is where PostgreSQL has the things of a kind.
type catalog struct{ table, name, connections, options string }

var catalogs = map[string]catalog{
	"Role":     {"pg_authid", "rolname", "rolconnlimit", " LOGIN PASSWORD 'secret'"},
	"Database": {"pg_database", "datname", "datconnlimit", ""},
}

// A namer is the connector of one kind: what has a name in PostgreSQL, with its owner in a comment
// or with claims.
type namer[T client.Object] struct {
	db     *sql.DB
	kind   string
	stores bool
	visits *visits
}

func (n namer[T]) Connect(_ context.Context, req *step.Request[T]) (external.Client[T], error) {
	n.visits.add(n.kind + " " + client.ObjectKeyFromObject(req.Object).String())
	return n, nil
}

func (n namer[T]) Observe(ctx context.Context, obj T, id string) (external.Observation, error) {
	in, owner := catalogs[n.kind], ""
	seen := external.Observation{State: external.UpToDate, Connection: map[string][]byte{"username": []byte(id), "password": []byte("secret")}}
	var connections int
	err := n.db.QueryRowContext(ctx, fmt.Sprintf("SELECT %s, coalesce(shobj_description(oid, '%s'), '') FROM %s WHERE %s = $1", in.connections, in.table, in.table, in.name), id).Scan(&connections, &owner)
	if n.stores {
		seen.Owner = owner
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return external.Observation{State: external.Absent}, nil
	case connections != specOf(obj).Connections:
		seen.State, seen.Drift = external.Drifted, []string{"spec.connections"}
	case n.stores && owner != external.OwnerOf(obj):
		seen.State, seen.Drift = external.Drifted, []string{"owner"}
	}
	return seen, err
}

// Create leaves what exists as it is.
func (n namer[T]) Create(ctx context.Context, obj T, as external.Creation) (string, error) {
	_, err := n.db.ExecContext(ctx, fmt.Sprintf("CREATE %s %s%s", n.kind, quoted(as.Name), catalogs[n.kind].options))
	refused := &pgconn.PgError{}
	if errors.As(err, &refused) && slices.Contains([]string{"42710", "42P04", "23505"}, refused.Code) {
		return as.Name, nil // it exists
	}
	if err != nil {
		return "", err
	}
	return as.Name, n.Update(ctx, obj, as.Name)
}

func (n namer[T]) Update(ctx context.Context, obj T, id string) error {
	n.visits.write("update of " + id + " by " + client.ObjectKeyFromObject(obj).String())
	_, err := n.db.ExecContext(ctx, fmt.Sprintf("ALTER %s %s CONNECTION LIMIT %d", n.kind, quoted(id), specOf(obj).Connections))
	if err == nil && n.stores {
		_, err = n.db.ExecContext(ctx, fmt.Sprintf("COMMENT ON %s %s IS '%s'", n.kind, quoted(id), external.OwnerOf(obj)))
	}
	return err
}

func (n namer[T]) Delete(ctx context.Context, obj T, id string) error {
	n.visits.write("deletion of " + id + " by " + client.ObjectKeyFromObject(obj).String())
	_, err := n.db.ExecContext(ctx, fmt.Sprintf("DROP %s IF EXISTS %s", n.kind, quoted(id)))
	return err
}

func quoted(id string) string { return `"` + strings.ReplaceAll(id, `"`, `""`) + `"` }

// visits counts for how many reconciles of each object PostgreSQL was asked, and what was written.
type visits struct {
	mu     sync.Mutex // for all below
	all    map[string]int
	writes []string
}

func (v *visits) write(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writes = append(v.writes, time.Now().Format("05.000 ")+what)
}

// writesOf returns the writes of a name.
func (v *visits) writesOf(id string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(slices.DeleteFunc(slices.Clone(v.writes), func(w string) bool { return !strings.Contains(w, " of "+id+" ") }), "\n")
}

func (v *visits) add(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all[key]++
}

func (v *visits) of(key string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all[key]
}

// rowOf returns all that PostgreSQL has of a name, with the transaction that wrote it last: "" if
// there is none. What was written, and be it the same once more, has another row.
func rowOf(t *testing.T, db *sql.DB, kind, name string) string {
	t.Helper()
	in, password := catalogs[kind], "''"
	if kind == "Role" {
		password = "coalesce(rolpassword, '')"
	}
	var row string
	err := db.QueryRowContext(t.Context(), fmt.Sprintf("SELECT concat_ws(' ', oid, xmin, %s, %s, %s, shobj_description(oid, '%s')) FROM %s WHERE %s = $1", in.name, in.connections, password, in.table, in.table, in.name), name).Scan(&row)
	if !errors.Is(err, sql.ErrNoRows) {
		exampletest.Must(t, err)
	}
	return row
}

// await waits until something is so, for half a minute.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if !time.Now().Before(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
