// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// databaseNames are the names of databases whose spec has none.
var databaseNames = external.NameRules{Prefix: "k8s_", MaxLength: 64}

// databaseName returns the name of the database of an object.
func databaseName(obj *v1.Database) (string, error) {
	if obj.Spec.Name != "" {
		return obj.Spec.Name, nil
	}
	return databaseNames.NameOf(obj)
}

// newServerReference returns the reference of Databases to their Servers.
func newServerReference() *reference.Reference[*v1.Database, *v1.Server] {
	return reference.New(reference.Options[*v1.Database, *v1.Server]{
		Name:     "server", // the condition is v1.ConditionServerReady
		Target:   func(obj *v1.Database) reference.Target { return reference.Target{Name: obj.Spec.Server} },
		NotReady: notReady,
	})
}

// notReady returns why a Server can't be used yet. One that is ready has its credentials in use:
// neither is gone before the Users and Databases that use the Server.
func notReady(server *v1.Server) string {
	if !meta.IsStatusConditionTrue(server.Status.Conditions, condition.Ready) {
		return "its administrator cannot log in"
	}
	return ""
}

// databases connects to the servers of Databases.
type databases struct {
	dependencies
	serverOf *reference.Reference[*v1.Database, *v1.Server]
}

var _ external.Connector[*v1.Database] = databases{}

// Connect implements [external.Connector].
func (d databases) Connect(ctx context.Context, req *step.Request[*v1.Database]) (external.Client[*v1.Database], error) {
	server, err := d.serverOf.Get(ctx, req)
	if err != nil {
		return nil, err
	}
	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: server.Spec.CredentialsSecret})
	if err != nil {
		return nil, err
	}
	req.Object.Status.Address = d.addressOf(server)
	accounts, err := d.connectTo(ctx, server, secret, req.Object)
	if err != nil {
		return nil, err
	}
	return &databaseClient{server: accounts}, nil
}

// databaseClient is the client of one database.
type databaseClient struct {
	server Accounts
	now    Settings // as it was observed
}

var _ external.LateInitializer[*v1.Database] = (*databaseClient)(nil)

// Observe implements [external.Client]. The server does not know the owner of a database.
func (c *databaseClient) Observe(ctx context.Context, obj *v1.Database, id string) (external.Observation, error) {
	obj.Status.Database = id
	now, err := c.server.Database(ctx, id)
	if errors.Is(err, ErrNoDatabase) {
		return external.Observation{State: external.Absent}, nil
	} else if err != nil {
		return external.Observation{}, err
	}
	c.now = now
	seen := external.Observation{State: external.UpToDate}
	want := wanted(obj)
	if want.CharacterSet != "" && want.CharacterSet != now.CharacterSet {
		seen.Drift = append(seen.Drift, "spec.characterSet")
	}
	if want.Collation != "" && want.Collation != now.Collation {
		seen.Drift = append(seen.Drift, "spec.collation")
	}
	if len(seen.Drift) > 0 {
		seen.State = external.Drifted
	}
	return seen, nil
}

func wanted(obj *v1.Database) Settings {
	return Settings{CharacterSet: obj.Spec.CharacterSet, Collation: obj.Spec.Collation}
}

// Create implements [external.Client].
func (c *databaseClient) Create(ctx context.Context, obj *v1.Database, creation external.Creation) (string, error) {
	return creation.Name, c.server.CreateDatabase(ctx, creation.Name, wanted(obj))
}

// Update implements [external.Client].
func (c *databaseClient) Update(ctx context.Context, obj *v1.Database, id string) error {
	return c.server.AlterDatabase(ctx, id, wanted(obj))
}

// Delete implements [external.Client]. A database with tables is not dropped.
func (c *databaseClient) Delete(ctx context.Context, _ *v1.Database, id string) error {
	tables, err := c.server.Tables(ctx, id)
	if err != nil {
		return err
	}
	if tables > 0 {
		return failure.Terminal(fmt.Errorf("database %s has %d tables", id, tables), "DatabaseNotEmpty", "drop the tables")
	}
	return c.server.DropDatabase(ctx, id)
}

// LateInitialize implements [external.LateInitializer].
func (c *databaseClient) LateInitialize(obj *v1.Database) {
	if obj.Spec.CharacterSet == "" {
		obj.Spec.CharacterSet = c.now.CharacterSet
	}
	if obj.Spec.Collation == "" {
		obj.Spec.Collation = c.now.Collation
	}
}

// Close closes the connection.
func (c *databaseClient) Close() error { return c.server.Close() }
